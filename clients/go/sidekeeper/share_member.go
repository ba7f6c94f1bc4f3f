package sidekeeper

import (
	"context"
	"strconv"
	"sync"
	"time"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// A shareMember is a member of a set.
type shareMember struct {
	carried

	news chan struct{} // that other items are assigned

	mu       sync.Mutex
	assigned Assignment
}

func (s *sharing) join(ctx context.Context) (*shareMember, error) {
	join := &assignmentv1.JoinRequest{Set: s.set, Member: s.options.Member, Owner: s.options.Owner, Metadata: s.options.Metadata}
	if s.options.Capacity != nil {
		join.Capacity = new(bounded32(*s.options.Capacity))
	}
	onLease := carriedOptions{lease: s.lease, owner: s.options.Owner, onSuspended: s.options.OnSuspended, onResumed: s.options.OnResumed}
	what := "member " + s.set + "/" + s.options.Member
	return carry(ctx, s.client, what, nil, onLease, func(*time.Duration) (*shareMember, *request) {
		made := &shareMember{news: make(chan struct{}, 1)}
		start := &leasev1.Start{Request: &leasev1.Start_Share{Share: join}}
		return made, &request{start: start, handle: func(event *leasev1.Event) { made.handle(event.GetShare()) }}
	})
}

func (m *shareMember) handle(event *assignmentv1.JoinResponse) {
	switch event := event.GetEvent().(type) {
	case *assignmentv1.JoinResponse_Joined:
		if m.id == "" { // others read it by now
			m.id = strconv.FormatInt(event.Joined.GetIncarnation(), 10)
		}
	case *assignmentv1.JoinResponse_Assigned:
		told := event.Assigned
		m.mu.Lock()
		defer m.mu.Unlock()
		m.assigned = Assignment{
			Epoch: told.GetEpoch(), Items: told.GetItems(), Members: int(told.GetMembers()), Total: int(told.GetTotal()),
			Unassigned: int(told.GetUnassigned()),
		}
		signal(m.news)
	}
}

func (m *shareMember) now() Assignment {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.assigned
}
