package simulation

import (
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
)

// leader is the server that leads a quorum, or nil.
func (e *Ensemble) leader() *server {
	for _, s := range e.servers {
		if s.term != nil && s.term.active && s.term.epoch == e.begun && !s.frozen {
			return s
		}
	}
	return nil
}

func deleteContainer(path string) []byte { return embedded.DeleteContainer(path) }

// Leader is the number of the server that leads, −1 if there is none.
func (e *Ensemble) Leader() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if leader := e.leader(); leader != nil {
		return leader.number
	}
	return -1
}

// Await waits until all servers serve, with one leader.
func (e *Ensemble) Await() {
	for !e.complete() {
		time.Sleep(e.options.Tick / 20)
	}
}

func (e *Ensemble) complete() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.servers {
		if !s.serving || s.frozen {
			return false
		}
	}
	return e.leader() != nil
}

// ServerOf is the number of the server that a session is attached to, −1 if there is none.
func (e *Ensemble) ServerOf(session int64) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.servers {
		for _, c := range s.clients {
			if c.session == session {
				return s.number
			}
		}
	}
	return -1
}

// EndOf is when the end of a session was committed.
func (e *Ensemble) EndOf(session int64) (end time.Time, ended bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ended := e.ended[session]
	return e.began.Add(at), ended
}

// Names lists a node's children as they are committed.
func (e *Ensemble) Names(path string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.truth.Names(path)
}

// Stat tells of a node as it is committed.
func (e *Ensemble) Stat(path string) (embedded.Stat, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.truth.Stat(path)
}

// Data are a node's as they are committed.
func (e *Ensemble) Data(path string) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.truth.Data(path)
}

// Owned are the nodes that live with a session, as they are committed.
func (e *Ensemble) Owned(session int64) (paths []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, path := range e.truth.Paths() {
		if stat, _ := e.truth.Stat(path); stat.Owner == session {
			paths = append(paths, path)
		}
	}
	return paths
}

// Sessions is how many sessions are alive.
func (e *Ensemble) Sessions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.truth.Sessions())
}

// Disagreement says in what the servers that have applied everything differ, which would be a mistake of the simulation;
// empty if they do not.
func (e *Ensemble) Disagreement() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.servers {
		if s.applied != len(e.order) {
			continue
		}
		if s.replica.Zxid() != e.truth.Zxid() || !slices.Equal(s.replica.Paths(), e.truth.Paths()) {
			return "the servers have applied the same transactions and differ"
		}
	}
	return e.diverged
}
