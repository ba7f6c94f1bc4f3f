package service

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/journal"
)

const (
	// noteTime is how long a caller waits for the disk of the journal.
	noteTime = time.Second
	// mostAtDisk is how many leases ask that disk at once. While it hangs, each of them takes a thread of the kernel's.
	mostAtDisk = 16
)

// A disk is that of the journal. Each question takes a place in the channel.
type disk chan struct{}

// ask waits for a place.
func (d disk) ask(something func()) {
	d <- struct{}{}
	defer func() { <-d }()
	something()
}

// A note is what the journal keeps of a lease for the process that comes after this one. Its disk may be slow, or never answer. Nothing that
// ends waits for it, nor does anything that holds a lock of this process.
type note struct {
	kept *journal.Journal
	key  string
	log  *zap.Logger    // of the lease
	own  *caller.Ending // the connection of the lease's stream
	disk disk

	abandoned bool   // it was not written in time: the lease cannot be resumed. Set by begin
	shared    *latch // closed when a later process knows that others than that connection's caller were told of the lease, if there is one
	forgotten *latch // closed when no later process can come back to the lease

	forgetting sync.Once

	asking  sync.Mutex
	sharing *call[struct{}] // the newest attempt to note that others were told; nil before the first

	mu     sync.Mutex // held while the journal is asked
	record journal.Record
	gone   bool
}

// begin writes the note. It returns nil if nothing was begun, because the disk does not answer.
func (n *note) begin() *note {
	late := after(noteTime)
	select {
	case n.disk <- struct{}{}:
	case <-late:
		n.log.Warn("a lease cannot be resumed: the state directory does not answer")
		return nil
	}
	written := run(func() (none struct{}, _ error) {
		defer func() { <-n.disk }()
		err := n.write()
		if err != nil {
			n.log.Warn("a lease cannot be resumed: it cannot be noted", zap.Error(err))
			n.kept.Remove(n.key)
		}
		return none, err
	})
	select {
	case <-written.over.Done():
		if _, err := written.wait(); err != nil {
			return nil
		}
		return n
	case <-late:
		n.log.Warn("a lease cannot be resumed: the state directory does not answer in time")
		n.abandoned = true
		n.forget()
		return n
	}
}

// write has what stands in the record noted, unless the lease is forgotten: then no later process needs it. With an error, what was noted before
// stands.
func (n *note) write() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone {
		return nil
	}
	return n.kept.Write(n.key, n.record)
}

// forget has no later process come back to the lease, and returns at once.
func (n *note) forget() {
	n.forgetting.Do(func() {
		go n.disk.ask(func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.gone = true
			n.kept.Remove(n.key)
			n.forgotten.close()
		})
	})
}

// share says whether a later process knows that others were told of the lease. They must not be told before. Where that cannot be noted, what is
// noted stays, and the next caller that asks has it tried again.
func (n *note) share(ctx context.Context) bool {
	if isClosed(n.shared.closed) {
		return true
	}
	tried := n.tryToShare()
	select {
	case <-tried.over.Done():
	case <-ctx.Done():
	case <-after(noteTime):
	}
	return isClosed(n.shared.closed)
}

// tryToShare is the attempt to note that others were told of the lease that is under way, or a new one.
func (n *note) tryToShare() *call[struct{}] {
	n.asking.Lock()
	defer n.asking.Unlock()
	if n.sharing == nil || n.sharing.over.IsGiven() {
		n.sharing = run(func() (none struct{}, err error) {
			n.disk.ask(func() { err = n.noteShared() })
			return none, err
		})
	}
	return n.sharing
}

func (n *note) noteShared() error {
	n.mu.Lock()
	n.record.Shared = true
	n.mu.Unlock()
	err := n.write()
	if err != nil {
		n.log.Warn("others are not told of a lease: that they are cannot be noted", zap.Error(err))
		return err
	}
	n.shared.close()
	return nil
}
