// Package store is what the locks of a fault test guard: two counters for each lock, read and written over a Unix socket.
//
// The fenced one refuses whatever comes with a smaller token than it has seen, as everything should that a lock guards. The
// naive one takes what it is given: where a caller was stopped between its look at the lock and its write it loses updates,
// and thereby shows that a fault has teeth.
package store

// A question is one line of JSON from a client.
type question struct {
	Client int    `json:"client"`
	Store  string `json:"store"`
	Lock   string `json:"lock"`
	Token  int64  `json:"token"`
	Write  bool   `json:"write"`
	Value  int64  `json:"value"` // to write
}

// An answer is one line of JSON to a client.
type answer struct {
	Value   int64 `json:"value"` // as it is now
	Refused bool  `json:"refused"`
}
