package simulation_test

import (
	"slices"
	"strings"
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
	holds         []*held
	token, reader int64 // the largest so far, of those that exclude each other and of readers
}

type held struct {
	mode    recipes.Mode
	session believing
	token   int64 // 0 if whoever holds knows none
	over    bool
}

// A believing session says for how long it takes itself for alive.
type believing interface {
	ID() int64
	ValidFor() time.Duration
}

// enter notes a grant: in this instant nobody whom it excludes may be valid, the token must be larger than theirs, and the node must stand
// ahead of them in what is committed, and be this session's.
func (b *board) enter(s *stage, lock recipes.Lock, mode recipes.Mode, token int64, session believing) *held {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.locks[lock.Path]
	if q == nil {
		q = &queue{}
		b.locks[lock.Path] = q
	}
	q.holds = slices.DeleteFunc(q.holds, func(h *held) bool { return h.over })
	for _, other := range q.holds {
		switch valid := other.session.ValidFor(); {
		case valid <= 0:
		case mode == recipes.Read && other.mode == recipes.Read:
			s.total.shared.Add(1)
		default:
			b.accusef("%s: %x is granted while %x is valid for %v", lock.Path, token, other.token, valid)
		}
	}
	if token != 0 && token <= q.newest(mode) {
		b.accusef("%s: %x is granted after %x", lock.Path, token, q.newest(mode))
	}
	if token != 0 && session.ValidFor() > 0 && !s.owns(lock, mode, token, session) {
		b.accusef("%s: %x is granted and does not own the lock", lock.Path, token)
	}
	if mode == recipes.Read {
		q.reader = max(q.reader, token)
	} else {
		q.token = max(q.token, token)
	}
	granted := &held{mode: mode, session: session, token: token}
	q.holds = append(q.holds, granted)
	return granted
}

func (b *board) exit(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.over = true
}

// newest is the largest token of those that a hold of this mode excludes.
func (q *queue) newest(mode recipes.Mode) int64 {
	if mode == recipes.Read {
		return q.token
	}
	return max(q.token, q.reader)
}

// owns says whether the committed node of the lock with this token is the session's, and no older one keeps it from holding.
func (s *stage) owns(lock recipes.Lock, mode recipes.Mode, token int64, session believing) (owned bool) {
	for _, name := range s.Names(lock.Path) {
		switch stat, there := s.Stat(lock.Path + "/" + name); {
		case !there || stat.Czxid > token:
		case stat.Czxid == token:
			owned = stat.Owner == session.ID()
		case mode != recipes.Read || !strings.Contains(name, "__READ__"):
			return false
		}
	}
	return owned
}
