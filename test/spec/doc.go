// Package spec holds models of what the product promises, in TLA+, and has TLC check them: Session.tla is when a session is certainly alive, by
// the formula of internal/zookeeper, Lock.tla who may hold a lock and when its place is given up, Guard.tla that what is written under a hold
// is never carried out too late, Semaphore.tla who may have permits, Mark.tla until when nobody can have asked for a place's end, Resume.tla how
// a sidecar comes back to its leases, Delay.tla for how long nobody is granted a lock after a hold that was lost, Sequence.tla how numbers are
// handed out, Commit.tla how the configuration changes, Once.tla how the work of a key or of a schedule's tick begins, and Claim.tla when a lock
// that is held without a process ends. Claim.tla stands on Lock.tla, as Guard.tla does: so Lock.tla itself has no times and no more states.
//
// That the code does what the models do is held against LockTrace.tla and SessionTrace.tla: they are Lock.tla and Session.tla, whose steps are
// taken as the running code (internal/trace) and a simulated ensemble have taken them in random schedules (test/traces). The code says what it
// has done, and the ensemble's own servers say what they have. The same is done with rounds of faults on a real ensemble, and with the scenarios
// that all clients must pass, which Go and Python play against sidecars with an ensemble of their own. A trace that a model does not admit is
// a mistake of the code, or of the model.
//
// A model that holds shows little by itself. So each has the names of mistakes, one of which it can be told to make, and must then be
// refuted; and it has invariants that say that something is never reached, which must be refuted, too. The bounds are as large as two
// processors go through in minutes; `go test -tags spec ./test/spec -deep` goes further.
package spec
