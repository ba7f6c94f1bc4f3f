package txnlog

import (
	"slices"
	"time"
)

// A Stamp is when something happened, in the ensemble's order and by its leader's clock. The zero Stamp is never.
type Stamp struct {
	Zxid int64
	Time time.Time
}

// Happened says whether it did.
func (s Stamp) Happened() bool { return s.Zxid != 0 }

// A Life is what became of one node between being made and being deleted.
type Life struct {
	Path  string
	Made  Stamp
	Owner int64 // the session that it goes with; 0 if with none
	// Writes are what was in it: the first is what it was made with.
	Writes []Write
	Gone   Stamp // never, if it is still there
	GoneBy int64 // the session that deleted it or ended with it; 0: the leader removed it
	// Expired says that it went since its session had not been heard of for too long, and not since somebody asked for it.
	Expired bool
}

// A Write is one value of a node.
type Write struct {
	Stamp
	Session int64
	Version int32
	Data    []byte
}

// Lives returns the lives of all nodes that were made after Since, in the order in which they were made.
func (l *Log) Lives() []*Life {
	r := replay{standing: map[string]*Life{}, owned: map[int64][]*Life{}}
	for _, transaction := range l.Transactions {
		for _, change := range transaction.Changes {
			r.apply(transaction, change)
		}
	}
	return r.lives
}

// A replay does again what a log tells.
type replay struct {
	lives    []*Life
	standing map[string]*Life
	owned    map[int64][]*Life // by session; some are gone
}

func (r *replay) apply(t Transaction, change Change) {
	switch change.Kind {
	case Create:
		r.create(t, change)
	case Set:
		if life := r.standing[change.Path]; life != nil {
			life.Writes = append(life.Writes, t.write(change))
		}
	case Delete:
		r.remove(t, r.standing[change.Path], false)
	case EndSession:
		r.end(t, change)
	}
}

func (r *replay) create(t Transaction, change Change) {
	life := &Life{Path: change.Path, Made: t.stamp(), Writes: []Write{t.write(change)}}
	if change.Owned {
		life.Owner = t.Session
		r.owned[t.Session] = append(r.owned[t.Session], life)
	}
	r.lives = append(r.lives, life)
	r.standing[change.Path] = life
}

// end removes what a session owned. The leader notes the paths that it knows of; what was committed by then goes as well.
func (r *replay) end(t Transaction, change Change) {
	owned := slices.Clone(r.owned[t.Session])
	for _, path := range change.Paths {
		if life := r.standing[path]; life != nil {
			owned = append(owned, life)
		}
	}
	delete(r.owned, t.Session)
	for _, life := range owned {
		r.remove(t, life, t.Cxid == 0)
	}
}

func (r *replay) remove(t Transaction, life *Life, expired bool) {
	if life == nil || life.Gone.Happened() {
		return
	}
	life.Gone, life.GoneBy, life.Expired = t.stamp(), t.Session, expired
	delete(r.standing, life.Path)
}

func (t Transaction) stamp() Stamp { return Stamp{t.Zxid, t.Time} }

func (t Transaction) write(change Change) Write {
	return Write{Stamp: t.stamp(), Session: t.Session, Version: change.Version, Data: change.Data}
}
