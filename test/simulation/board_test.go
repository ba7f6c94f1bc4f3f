package simulation_test

import (
	"slices"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A board shows who takes himself for the holder of what.
type board struct {
	*witness
	mu    sync.Mutex
	locks map[string]*queue
}

func newBoard(w *witness) *board { return &board{witness: w, locks: map[string]*queue{}} }

type queue struct {
	holds []*held
	token int64 // the largest so far
}

type held struct {
	session believing
	token   int64 // 0 if whoever holds knows none
	over    bool
}

// A believing session says for how long it takes itself for alive.
type believing interface {
	ID() int64
	ValidFor() time.Duration
}

// enter notes a grant: in this instant nobody else may be valid, the token must be new, and the node must be first in what
// is committed, and this session's.
func (b *board) enter(s *stage, lock recipes.Lock, token int64, session believing) *held {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.locks[lock.Path]
	if q == nil {
		q = &queue{}
		b.locks[lock.Path] = q
	}
	q.holds = slices.DeleteFunc(q.holds, func(h *held) bool { return h.over })
	for _, other := range q.holds {
		if valid := other.session.ValidFor(); valid > 0 {
			b.accusef("%s: %x is granted while %x is valid for %v", lock.Path, token, other.token, valid)
		}
	}
	if token != 0 && token <= q.token {
		b.accusef("%s: %x is granted after %x", lock.Path, token, q.token)
	}
	if token != 0 && session.ValidFor() > 0 && !s.owns(lock, token, session) {
		b.accusef("%s: %x is granted and does not own the lock", lock.Path, token)
	}
	q.token = max(q.token, token)
	granted := &held{session: session, token: token}
	q.holds = append(q.holds, granted)
	return granted
}

func (b *board) exit(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.over = true
}

// owns says whether the oldest committed node of the lock has this token and is the session's.
func (s *stage) owns(lock recipes.Lock, token int64, session believing) bool {
	oldest, owner := int64(0), int64(0)
	for _, name := range s.Names(lock.Path) {
		if stat, there := s.Stat(lock.Path + "/" + name); there && (oldest == 0 || stat.Czxid < oldest) {
			oldest, owner = stat.Czxid, stat.Owner
		}
	}
	return oldest == token && owner == session.ID()
}
