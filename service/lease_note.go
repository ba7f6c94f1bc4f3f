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

	sharing, forgetting sync.Once

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
	written := run(func() (ok bool, _ error) {
		defer func() { <-n.disk }()
		ok, _ = n.write()
		return ok, nil
	})
	select {
	case <-written.done:
		if ok, _ := written.wait(); ok {
			return n
		}
		return nil
	case <-late:
		n.log.Warn("a lease cannot be resumed: the state directory does not answer in time")
		n.abandoned = true
		n.forget()
		return n
	}
}

// write has what stands in the record noted. What cannot be noted cannot be resumed. Safe says that no later process knows less than that.
func (n *note) write() (noted, safe bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone {
		return false, true
	}
	err := n.kept.Write(n.key, n.record)
	if err == nil {
		return true, true
	}
	n.log.Warn("a lease cannot be resumed: it cannot be noted", zap.Error(err))
	return false, n.kept.Remove(n.key)
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

// share says whether a later process knows that others were told of the lease. They must not be told before.
func (n *note) share(ctx context.Context) bool {
	n.sharing.Do(func() {
		go n.disk.ask(func() {
			n.mu.Lock()
			n.record.Shared = true
			n.mu.Unlock()
			if _, safe := n.write(); safe {
				n.shared.close()
			}
		})
	})
	if isClosed(n.shared.closed) {
		return true
	}
	select {
	case <-n.shared.closed:
		return true
	case <-ctx.Done():
	case <-after(noteTime):
	}
	return false
}
