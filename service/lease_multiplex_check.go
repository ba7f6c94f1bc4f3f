package service

import (
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
)

// unsent is how many answers wait.
func (m *multiplex) unsent() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.box.unsent() + len(m.checks)
}

// check answers for how long the lease is valid, if it sleeps once it does not.
func (m *multiplex) check(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checks = append(m.checks, id)
	switch {
	case len(m.checks) > 1: // it is being woken
	case m.lease.rouse():
		go func() {
			m.lease.wake(m.ctx)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.answerChecks()
		}()
	default:
		m.answerChecks()
	}
}

// answerChecks answers those that wait. The lock is held.
func (m *multiplex) answerChecks() {
	for _, id := range m.checks {
		if !m.silent {
			m.answerCheck(id)
		}
	}
	m.checks = nil
}

// answerCheck says for how long the lease is valid. What is told is noted before it leaves.
func (m *multiplex) answerCheck(id uint64) {
	m.box.add(func() (*leasev1.MultiplexResponse, bool) {
		checked := &leasev1.Checked{CheckId: id, ValidFor: durationpb.New(m.lease.tell(caller.Of(m.ctx)))}
		return &leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Checked{Checked: checked}}, true
	}, nil)
}
