package caller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// Sharing is the workload of one large set, and nothing else.
const Sharing = "W18"

// How many items a set has in rounds among others, and in those of a large set alone; how many members each process has of that.
const (
	fewItems    = 40
	manyItems   = 500
	manyMembers = 2
)

func shareFew(ctx context.Context, c *caller) { c.shareItems(ctx, fewItems) }

func shareMany(ctx context.Context, c *caller) { c.shareItems(ctx, manyItems) }

// A sharer is a member of a set. It notes each item that it is assigned as a lock that it asks for from then on, since the library takes it.
type sharer struct {
	*caller

	set string

	mu     sync.Mutex
	wanted map[string]*want // by item
}

// A want is one operation: an item that the member waits for, or works on.
type want struct {
	op   int64
	held bool
}

// shareItems is a member of the set again and again: for long, and sometimes only for a while, after which it drains or just leaves.
func (c *caller) shareItems(ctx context.Context, items int) {
	s := &sharer{caller: c, set: c.name("set"), wanted: map[string]*want{}}
	for s.define(ctx, items) != nil && ctx.Err() == nil {
		c.calm(ctx, false)
	}
	for pause(ctx, c.between(0, c.order.Timeout)) {
		s.share(ctx)
	}
}

// define is done by each member, since each may be the first.
func (s *sharer) define(ctx context.Context, items int) error {
	connection, err := dial(s.order.Address)
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	request := &assignmentv1.DefineRequest{Set: s.set}
	for i := range items {
		request.Items = append(request.Items, history.ItemOf(i))
	}
	_, err = assignmentv1.NewAssignmentServiceClient(connection).Define(ctx, request, grpc.WaitForReady(true))
	if err == nil {
		s.note(0, history.Event{Kind: history.Defined, Set: s.set, Count: int64(items)})
	}
	return err
}

func (s *sharer) share(ctx context.Context) {
	options := sidekeeper.ShareOptions{
		Member: fmt.Sprintf("%d-%d", s.order.Slot, s.index), OnAssigned: s.assigned, OnError: func(string, error) {},
		Drain: s.dice.IntN(2) == 0, DrainTimeout: s.between(time.Second, 4*time.Second),
	}
	if s.dice.IntN(3) == 0 {
		options.Capacity = new(s.dice.IntN(manyItems))
	}
	staying, leave := context.WithTimeout(ctx, s.between(2*s.order.Timeout, 40*s.order.Timeout))
	defer leave()
	_ = s.library.Share(staying, s.set, s.handle, options) // each loss is noted where it is seen
	s.assigned(sidekeeper.Assignment{})
}

// assigned begins an operation for each item that is new, and ends those of items that the member had no lock of and lacks now.
func (s *sharer) assigned(now sidekeeper.Assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range now.Items {
		if s.wanted[item] == nil {
			s.wanted[item] = s.ask(item)
		}
	}
	for item, w := range s.wanted {
		if slices.Contains(now.Items, item) {
			continue
		}
		delete(s.wanted, item)
		if !w.held {
			s.note(w.op, history.Event{Kind: history.Ended, Code: codes.Canceled.String(), ByUser: true})
		}
	}
}

func (s *sharer) ask(item string) *want {
	return &want{op: s.begin(history.Event{
		Kind: history.Called, Lock: s.set + "/" + item, Mode: history.Exclusive, Resumes: s.order.Resumes,
	})}
}

// handle works on an item until it moves or is lost.
func (s *sharer) handle(ctx context.Context, item *sidekeeper.Item) error {
	s.mu.Lock()
	w := s.wanted[item.Name()]
	if w == nil || w.held { // it has just moved
		s.mu.Unlock()
		return nil
	}
	w.held = true
	c := s.twin()
	s.mu.Unlock()
	c.note(w.op, history.Event{Kind: history.Granted, Token: item.FencingToken()})
	h := &hold{caller: c, op: w.op, name: s.set + "/" + item.Name(), lock: item, stop: make(chan struct{})}
	h.look()
	h.stopped.Go(h.watch)
	for h.stay(ctx, c.between(time.Second, 4*time.Second)) {
		h.act()
	}
	h.end(item.Release)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted[item.Name()] == w {
		s.wanted[item.Name()] = s.ask(item.Name())
	}
	return nil
}
