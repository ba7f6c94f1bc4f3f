// Package endtoend tests the whole: sidecar processes between callers and a real ensemble, with links that are cut and
// processes that are killed and frozen, and judges by what callers see. It holds tests only.
//
// Callers that matter for how they die or freeze are processes of their own: the test binary, run again. All others live in
// the test, so that the end of one stream and the grant of another are read on one clock.
//
// `make test` runs each fault that ends leases a few times; `make chaos` runs more (the flags -rounds and -kills).
package endtoend
