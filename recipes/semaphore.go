package recipes

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"
)

// Errors of semaphores.
var (
	// ErrNoSemaphore means that there is no such semaphore.
	ErrNoSemaphore = errors.New("no such semaphore")
	// ErrSemaphoreExists means that there is such a semaphore already, with another limit.
	ErrSemaphoreExists = errors.New("semaphore exists with another limit")
	// ErrTooManyPermits means that more permits are wanted at a time than there are.
	ErrTooManyPermits = errors.New("more permits than the semaphore's limit")
	// ErrMalformedLimit means that the node of a semaphore's limit holds something else.
	ErrMalformedLimit = errors.New("the node of the semaphore's limit does not hold a number of permits")
)

// MaxLimit bounds how many permits a semaphore has: their directory is listed as a whole.
const MaxLimit = 10000

// Semaphore is a number of permits, of which each caller takes one or more at a time. It is Curator's InterProcessSemaphoreV2: a caller that
// wants permits takes a place in the queue of a mutex, at locks; the first makes a node for each of its permits, at leases, and has them once
// there are no more nodes than the limit, its own among them; then it leaves the queue. The limit is a SharedCount of Curator's.
//
// Whatever the queue does, no more permits are granted than the limit: of any that are granted, the one whose list of nodes was the last to be
// read found the nodes of all the others, and its own, and these were no more than the limit.
type Semaphore struct {
	Path    string     // of the directory; the limit lies beside it
	Numbers *Numbering // of the permits of one that joins, which takes one then; nil for permits without numbers
}

func (s Semaphore) queue() Lock {
	if s.Numbers != nil {
		return Lock{Path: s.Path + "/locks", bears: numberMark}
	}
	return Lock{Path: s.Path + "/locks"}
}

func (s Semaphore) limitPath() string { return s.Path + LimitSuffix }
func (s Semaphore) permits() Lock {
	return Lock{Path: s.Path + "/leases", permits: true, beside: []string{s.limitPath()}}
}

// LimitSuffix is what the name of a limit's node has more than that of its semaphore's directory.
const LimitSuffix = ".limit"

// Create makes the semaphore. It is as good if it is there with this limit. ErrSemaphoreExists, ErrMalformedLimit.
func (s Semaphore) Create(ctx context.Context, store Store, limit int) error {
	var failure error
	for range maxAttempts {
		_, failure = store.Commit(ctx, Create(s.limitPath(), encodeLimit(limit)))
		switch {
		case errors.Is(failure, ErrNoNode):
			if err := store.MakeDirectory(ctx, path.Dir(s.Path)); err != nil {
				return err
			}
			continue
		case !errors.Is(failure, ErrExists) && !errors.Is(failure, ErrOutcomeUnknown):
			return failure
		}
		if err := store.CatchUp(ctx); err != nil {
			return errors.Join(failure, err)
		}
		found, err := s.Limit(ctx, store)
		switch {
		case errors.Is(err, ErrNoSemaphore): // deleted, or not made
		case err == nil && found != limit:
			return ErrSemaphoreExists
		default:
			return err
		}
	}
	return failure
}

// Resize sets the limit and asks for the permits that it has no room for: those with a number that is not below it, and of the others those that
// were granted last. It returns of how many permits their holders were asked: the first in the queue, which waits with its nodes and makes
// others when it is asked, does not count. With a grace, those holders of ours are ended by force when it is over. ErrNoSemaphore;
// ErrOutcomeUnknown if a reply was lost: then asking again is safe.
func (s Semaphore) Resize(ctx context.Context, store Store, limit int, by, reason string, grace *time.Duration) (asked int, _ error) {
	if err := s.setLimit(ctx, store, limit); err != nil {
		return 0, err
	}
	if err := store.CatchUp(ctx); err != nil { // the list then has all permits that were granted with the old limit
		return 0, err
	}
	permits, _, err := s.permits().queue(ctx, store)
	if err != nil {
		return 0, err
	}
	var denied error
	var owners []int64 // of the permits that were asked for
	for _, permit := range permits.beyond(limit) {
		node, err := store.Get(ctx, s.permits().child(permit))
		if err == nil {
			_, err = s.permits().ask(ctx, store, permit, Revocation{By: by, Reason: reason, Grace: grace}, 0)
		}
		switch {
		case err == nil:
			owners = append(owners, node.Owner)
		case errors.Is(err, ErrDenied): // which keeps no other from being asked
			denied = err
		case !errors.Is(err, ErrNoNode):
			return len(owners), err
		}
	}
	asked, err = s.countHolders(ctx, store, owners)
	return asked, cmp.Or(err, denied)
}

// countHolders counts the sessions without that of the first in the queue. A caller that has just been granted permits may stand there still,
// and is not counted then.
func (s Semaphore) countHolders(ctx context.Context, tree Tree, owners []int64) (count int, _ error) {
	if len(owners) == 0 {
		return 0, nil
	}
	waiters, _, err := s.queue().queue(ctx, tree)
	if err != nil {
		return len(owners), err
	}
	first, err := s.first(ctx, tree, waiters)
	return len(slices.DeleteFunc(owners, func(owner int64) bool { return owner == first.Owner })), err
}

// first is the node of the first in the queue, which waits with the nodes of its permits; zero if there is none any more, or it may not be read.
func (s Semaphore) first(ctx context.Context, tree Tree, waiters queue) (first Node, err error) {
	if len(waiters) > 0 {
		first, err = tree.Get(ctx, s.queue().child(waiters[0]))
	}
	if errors.Is(err, ErrNoNode) || errors.Is(err, ErrDenied) {
		return Node{}, nil
	}
	return first, err
}

func (s Semaphore) setLimit(ctx context.Context, store Store, limit int) error {
	var failure error
	for range maxAttempts {
		if err := store.CatchUp(ctx); err != nil {
			return errors.Join(failure, err)
		}
		found, err := store.Get(ctx, s.limitPath())
		if errors.Is(err, ErrNoNode) {
			err = ErrNoSemaphore
		}
		if err != nil {
			return errors.Join(failure, err)
		}
		_, failure = store.Commit(ctx, Set(s.limitPath(), encodeLimit(limit), found.Version))
		switch {
		case errors.Is(failure, ErrNoNode):
			return ErrNoSemaphore
		case !errors.Is(failure, ErrBadVersion) && !errors.Is(failure, ErrOutcomeUnknown):
			return failure
		}
	}
	return failure
}

// Limit reads how many permits there are, as the tree shows it. ErrNoSemaphore, ErrMalformedLimit.
func (s Semaphore) Limit(ctx context.Context, tree Tree) (int, error) {
	node, err := tree.Get(ctx, s.limitPath())
	return limitIn(node, err)
}

// HasRoom says whether there are so many permits that no caller holds and that the first in the queue does not wait with. ErrNoSemaphore,
// ErrMalformedLimit. It does not say no for what the tree shows before it has caught up. If a caller waits for a permit with a number, it says
// no where no number is free, since the queue does not move then.
func (s Semaphore) HasRoom(ctx context.Context, tree Tree, count int) (bool, error) {
	hasRoom, err := s.showsRoom(ctx, tree, count)
	if hasRoom || err != nil {
		return hasRoom, err
	}
	if err := tree.CatchUp(ctx); err != nil {
		return false, err
	}
	return s.showsRoom(ctx, tree, count)
}

func (s Semaphore) showsRoom(ctx context.Context, tree Tree, count int) (bool, error) {
	limit, err := s.Limit(ctx, tree)
	if err != nil {
		return false, err
	}
	names, err := tree.Children(ctx, s.permits().Path)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return false, err
	}
	if len(names)+count > limit {
		return false, nil
	}
	waiters, _, err := s.queue().queue(ctx, tree)
	if err == nil && slices.ContainsFunc(waiters, func(c child) bool { return c.numbered }) {
		return s.mayGetNumber(ctx, tree, limit)
	}
	return err == nil, err
}

// Admit reads the limit with a watch, for a caller that wants so many permits. ErrTooManyPermits, ErrNoSemaphore, ErrMalformedLimit: no caller
// is refused for what the tree shows before it has caught up.
func (s Semaphore) Admit(ctx context.Context, tree Tree, count int) (limit int, changed *Signal, err error) {
	for _, late := range []bool{true, false} {
		limit, changed, err = s.watchLimit(ctx, tree)
		if err == nil && count > limit {
			err = ErrTooManyPermits
		}
		refused := errors.Is(err, ErrTooManyPermits) || errors.Is(err, ErrNoSemaphore) || errors.Is(err, ErrMalformedLimit)
		if !refused || !late {
			break
		}
		if err := tree.CatchUp(ctx); err != nil {
			return 0, nil, err
		}
	}
	return limit, changed, err
}

// watchLimit reads the limit with a watch.
func (s Semaphore) watchLimit(ctx context.Context, tree Tree) (int, *Signal, error) {
	node, changed, err := tree.Watch(ctx, s.limitPath())
	limit, err := limitIn(node, err)
	return limit, changed, err
}

func limitIn(node Node, err error) (int, error) {
	if errors.Is(err, ErrNoNode) {
		return 0, ErrNoSemaphore
	}
	if err != nil {
		return 0, err
	}
	return decodeLimit(node.Data)
}

func encodeLimit(limit int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(limit)) }

func decodeLimit(data []byte) (int, error) {
	if len(data) != 4 || binary.BigEndian.Uint32(data) > 1<<31-1 {
		return 0, fmt.Errorf("%w: %d bytes", ErrMalformedLimit, len(data))
	}
	return int(binary.BigEndian.Uint32(data)), nil
}
