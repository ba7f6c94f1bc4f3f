// Package doors knows every door of the programs that serve: each listener, each rpc, each content type and each file that is read. It takes
// them from the programs' own tables and fails for a door without a row in its table. Then it plays against each what the row says, and sees
// that the calls of other callers are answered and that what they hold is not lost. It holds tests only.
//
// `go test ./test/doors -v -run Attack -night -figures` measures: memory, and how long the others wait.
package doors
