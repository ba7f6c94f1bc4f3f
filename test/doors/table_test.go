package doors

import "strings"

// A door is a listener as callers of one kind meet it.
type door struct {
	flag    string                // of the program that listens
	callers string                // who attack
	stage   func(*stage)          // what runs meanwhile
	targets func(*stage) []target // where they call, one for each identity
	plays   []play
}

// doors are all listeners: each setting that makes a program listen has a row.
var doors = []door{
	{"serve --listen", "one identity", plain, sockets(1), []play{silence, endless, fields, crowd}},
	{"serve --listen", "six identities", plain, sockets(6), []play{endless, fields, crowd}},
	{"serve --listen", "an identity without a rule", plain, stranger, []play{silence, endless, fields, crowd}},
	{"serve --listen", "loopback TCP", plain, at("listen"), []play{silence, endless, fields, crowd}},
	{"serve --listen", "TLS, a certificate", secure, at("listen"), []play{silence, endless, fields, crowd}},
	{"serve --listen", "TLS, no certificate", secure, nameless("listen"), []play{silence, crowd}},
	{"serve --http-listen", "the token", plain, at("http-listen"), []play{silence, endless, fields, crowd}},
	{"serve --http-listen", "no token", plain, tokenless("http-listen"), []play{endless, fields, crowd}},
	{"serve --http-listen", "TLS, a certificate", secure, at("http-listen"), []play{silence, endless, fields, crowd}},
	{"serve --http-listen", "TLS, no certificate", secure, nameless("http-listen"), []play{silence, crowd}},
	{"serve --operator-listen", "an operator", plain, at("operator-listen"), []play{silence, endless, fields, crowd}},
	{"serve --metrics-listen", "any", plain, at("metrics-listen"), []play{silence, endless, crowd}},
	{"serve --admin-listen", "a socket", plain, at("admin-listen"), []play{silence, endless, crowd}},
	{"serve --admin-listen", "any of this machine", ruleless, at("admin-listen"), []play{silence, endless, crowd}},
	{"inject-webhook --listen", "any", injector, at("webhook"), []play{silence, endless, fields, crowd}},
	{"inject-webhook --metrics-listen", "any", injector, at("metrics-listen"), []play{silence, endless, crowd}},
	{"console --listen", "the token", console, at("console"), []play{silence, endless, fields, crowd}},
	{"console --listen", "no token", console, tokenless("console"), []play{endless, fields, crowd}},
}

// noDoors are settings that look like doors or files and against which nothing is played here, and why.
var noDoors = map[string]string{
	"dev --listen":          "as that of serve, by the same code, for development alone",
	"dev --listen-anywhere": "says what --listen may be",
	"dev --http-listen":     "as that of serve, by the same code, for development alone",
	"dev --metrics-listen":  "as that of serve, by the same code, for development alone",
	"dev --admin-listen":    "as that of serve, by the same code, for development alone",
	"dev --ensemble-port":   "the ensemble in memory, for development alone",
	"dev --tls-folder":      "is written, for development alone",
	"console --tls-ca":      "of the user who runs the console, as of each command that calls a sidecar",
	"console --tls-cert":    "of the user who runs the console, as of each command that calls a sidecar",
	"console --tls-key":     "of the user who runs the console, as of each command that calls a sidecar",
}

// An exception is of calls that may fail while a door is attacked, and why. The test tells of each.
type exception struct {
	flag, callers, play string // of the attack, as they begin
	calls               string // the beginning of what fails
	how                 outcome
	why                 string
}

// An outcome is what may become of calls.
type outcome int

const (
	late  outcome = iota // some fail, and some are answered
	never                // it may be that none is answered
	own                  // they are the attacker's own, by their identity, and are not made
)

const closedUnread = "open: a new connection is closed before its request is read, while others come faster than they are read"

// exceptions are what is not mended yet, `open`, and what is as it shall be.
var exceptions = []exception{
	{"serve --listen", "loopback TCP", "", "a lock read over HTTP", own, "callers over loopback are one"},
	{"serve --listen", "six", endless.name, "", never, "open: 1,608 unfinished requests of six identities take more than 384 MiB: the kernel kills the sidecar"},
	{"serve --listen", "six", crowd.name, "a probe over gRPC", never, "open: six identities have all connections, and nobody else gets a new one"},
	{"serve --listen", "six", crowd.name, "a lock read over HTTP", never, "open: six identities have all connections, and nobody else gets a new one"},
	{"serve --http-listen", "", "", "a lock read over HTTP", late, closedUnread},
	{"serve --metrics-listen", "", "", "a scrape", late, closedUnread},
	{"serve --metrics-listen", "", "", "a probe over HTTP", late, closedUnread},
	{"serve --admin-listen", "", "", "the status page", late, closedUnread},
	{"inject-webhook", "", "", "", late, closedUnread},
	{"console", "the token", fields.name, "", never, "open: requests that are decoded at once take more than 384 MiB: the kernel kills the console"},
	{"console", "", "", "the console's page", late, closedUnread},
}

// excused is the exception for something that has gone wrong; nil if there is none.
func excused(door door, play play, wrong string) *exception {
	for i, e := range exceptions {
		if strings.HasPrefix(door.flag, e.flag) && strings.HasPrefix(door.callers, e.callers) &&
			strings.HasPrefix(play.name, e.play) && strings.HasPrefix(wrong, e.calls) {
			return &exceptions[i]
		}
	}
	return nil
}

// A kind is how a method answers.
type kind string

const (
	unary  kind = "one answer"
	stream kind = "a stream of answers"
	both   kind = "streams both ways"
)

// rpcs are all methods. `endless` and `fields` are played against each at every door that takes calls: against a stream, with its first message.
var rpcs = []struct {
	service string
	kind    kind
	methods string
}{
	{"grpc.health.v1.Health", unary, "Check List"},
	{"grpc.health.v1.Health", stream, "Watch"},
	{"grpc.reflection.v1.ServerReflection", both, "ServerReflectionInfo"},
	{"grpc.reflection.v1alpha.ServerReflection", both, "ServerReflectionInfo"},
	{"sidekeeper.agreement.v1.AgreementService", unary, "Abort Begin Forget Get"},
	{"sidekeeper.agreement.v1.AgreementService", stream, "Await Vote"},
	{"sidekeeper.barrier.v1.BarrierService", unary, "Leave List Remove Set"},
	{"sidekeeper.barrier.v1.BarrierService", stream, "Enter Wait"},
	{"sidekeeper.config.v1.ConfigService", unary, "Commit Delete Get List Put"},
	{"sidekeeper.config.v1.ConfigService", stream, "Watch"},
	{"sidekeeper.election.v1.ElectionService", unary, "Get Proclaim Resign Transfer"},
	{"sidekeeper.election.v1.ElectionService", stream, "Campaign Watch"},
	{"sidekeeper.fencing.v1.FencingService", unary, "Verify"},
	{"sidekeeper.fencing.v1.FencingService", stream, "Watch"},
	{"sidekeeper.lease.v1.LeaseService", unary, "Check Close List"},
	{"sidekeeper.lease.v1.LeaseService", stream, "Open"},
	{"sidekeeper.lease.v1.LeaseService", both, "Multiplex"},
	{"sidekeeper.lock.v1.LockService", unary, "Break Check Explain Get List Release Revoke"},
	{"sidekeeper.lock.v1.LockService", stream, "Acquire AcquireAll Watch"},
	{"sidekeeper.membership.v1.MembershipService", unary, "Create Delete Get List Update"},
	{"sidekeeper.membership.v1.MembershipService", stream, "Join Watch"},
	{"sidekeeper.queue.v1.QueueService", unary, "Check Done List Put"},
	{"sidekeeper.queue.v1.QueueService", stream, "Take"},
	{"sidekeeper.semaphore.v1.SemaphoreService", unary, "Check Create Get List Release Resize"},
	{"sidekeeper.semaphore.v1.SemaphoreService", stream, "Acquire Watch"},
	{"sidekeeper.sequence.v1.SequenceService", unary, "AdvanceTo Create Delete Get List Next"},
}

// files are all settings that name a file. Those that are `reloaded` are attacked at the start and while the sidecar runs.
var files = []struct{ flag string }{
	{"serve --http-token-file"},
	{"serve --tls-cert"},
	{"serve --tls-key"},
	{"serve --tls-client-ca"},
	{"serve --tls-trust-domain"},
	{"serve --policy"},
	{"serve --zookeeper-auth-file"},
	{"serve --zookeeper-tls-ca"},
	{"serve --zookeeper-tls-cert"},
	{"serve --zookeeper-tls-key"},
	{"serve --state-dir"},
	{"serve --audit-log"},
	{"inject-webhook --pattern"},
	{"inject-webhook --tls-cert"},
	{"inject-webhook --tls-key"},
	{"inject-webhook --kube-token-file"},
	{"inject-webhook --kube-ca-file"},
}

// A form is how a request is written.
type form struct {
	json    bool
	wrapped bool // five bytes before a message say how long it is
}

// contentTypes are what requests over HTTP may be. `fields` is played in each.
var contentTypes = map[string]form{
	"application/json":                         {json: true},
	"application/json; charset=utf-8":          {json: true},
	"application/proto":                        {},
	"application/connect+json":                 {json: true, wrapped: true},
	"application/connect+json; charset=utf-8":  {json: true, wrapped: true},
	"application/connect+proto":                {wrapped: true},
	"application/grpc":                         {wrapped: true},
	"application/grpc+json":                    {json: true, wrapped: true},
	"application/grpc+json; charset=utf-8":     {json: true, wrapped: true},
	"application/grpc+proto":                   {wrapped: true},
	"application/grpc-web":                     {wrapped: true},
	"application/grpc-web+json":                {json: true, wrapped: true},
	"application/grpc-web+json; charset=utf-8": {json: true, wrapped: true},
	"application/grpc-web+proto":               {wrapped: true},
}
