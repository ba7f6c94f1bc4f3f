// Package traces writes down what the running code says that it does (internal/trace), and between that what a simulated ensemble has done in
// truth, and cuts it into traces that TLC can hold against the models in test/spec.
//
// A trace is a file of JSON lines, one Line each, in the order in which it happened. What the ensemble has done is never taken from the code
// that is judged: it is what the simulation's servers have committed, in the instant in which they have. Where the ensemble
// is real, it is what that has logged, and the code's steps are what sidecars have written that are built with the tag `traced` (Real). Such a
// sidecar that has an ensemble of its own, `sidekeeper dev`, writes what that commits, too (Embedded).
package traces
