package embedded

import "time"

// A Change is what one transaction has done with sessions and nodes.
type Change struct {
	Zxid      int64
	Session   int64         // whose transaction it was; the one that was opened, condemned or ended
	Timeout   time.Duration // of a session that was opened; otherwise 0
	Condemned bool          // the session's client is told that it has expired: see Condemn
	Ended     bool          // the session has ended, with all that it owned
	Made      []Owned
	Gone      []Owned
	Set       []string // paths of nodes whose data were replaced
	Closed    bool     // the ensemble was closed: nothing follows
}

// An Owned node is one that was made or has gone, with the session that owns it, or the number that stands for its kind.
type Owned struct {
	Path  string
	Owner int64
}

// commits tells Options.Committed, if anybody wants to be told. The ensemble is locked.
func (e *Ensemble) commits(change Change) {
	if e.options.Committed != nil {
		e.options.Committed(change)
	}
}
