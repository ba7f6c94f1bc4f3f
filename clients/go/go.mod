module github.com/sidekeeper/sidekeeper/clients/go

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/sidekeeper/sidekeeper/gen v0.1.0
	golang.org/x/sys v0.48.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)

// Users get what is tagged gen/v0.1.0; whoever works here has the folder beside.
replace github.com/sidekeeper/sidekeeper/gen => ../../gen
