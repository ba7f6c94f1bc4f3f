package caller

import (
	"context"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A lock is what a caller holds.
type lock interface {
	// Valid says whether it is certainly the caller's at this moment, and ValidFor for how long it is.
	Valid() bool
	ValidFor() time.Duration
	FencingToken() int64
	// Done is closed when it is the caller's no more; Err then says why, and is nil if the caller gave it up.
	Done() <-chan struct{}
	Err() error
	Release(ctx context.Context) error
}

// A locker acquires locks in one of the ways that are compared.
type locker interface {
	acquire(ctx context.Context, name string, options sidekeeper.LockOptions) (lock, error)
}

// libraryLocks are those of a sidecar, through its Go library.
type libraryLocks struct{ process *process }

func (l libraryLocks) acquire(ctx context.Context, name string, options sidekeeper.LockOptions) (lock, error) {
	acquired, err := l.process.library.Acquire(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return acquired, nil
}

// A sharedLease is the lease that several callers of a process hold locks with. When it is lost another takes its place.
type sharedLease struct {
	mu    sync.Mutex
	lease *sidekeeper.Lease
}

// get returns the lease, or nil where there is none to be had: then each lock gets a lease of its own.
func (s *sharedLease) get(ctx context.Context, from *sidekeeper.Client) *sidekeeper.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil && s.lease.Context().Err() == nil {
		return s.lease
	}
	s.end()
	if lease, err := from.OpenLease(ctx, sidekeeper.LeaseOptions{}); err == nil {
		s.lease = lease
	}
	return s.lease
}

func (s *sharedLease) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// patience is how long a sidecar may take to confirm that something was given up.
const patience = 10 * time.Second

func (s *sharedLease) end() {
	if s.lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.lease.Close(ctx)
	s.lease = nil
}
