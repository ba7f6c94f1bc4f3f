package service

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/journal"
)

// noteTime is how long a caller waits for the disk of the journal.
const noteTime = time.Second

// A note is what the journal keeps of a lease for the process that comes after this one. Its disk may be slow, or never answer. Nothing that
// ends waits for it, nor does anything that holds a lock of this process.
type note struct {
	kept *journal.Journal
	key  string
	log  *zap.Logger    // of the lease
	own  *caller.Ending // the connection of the lease's stream

	shared    *latch // closed when a later process knows that others than that connection's caller were told of the lease, if there is one
	forgotten *latch // closed when no later process can come back to the lease

	sharing sync.Once
	disk    sync.Mutex // held while the journal is asked
	record  journal.Record
	gone    bool
}

func newNote(kept *journal.Journal, key string, log *zap.Logger, own *caller.Ending, record journal.Record) *note {
	n := &note{kept: kept, key: key, log: log, own: own, record: record, shared: newLatch(), forgotten: newLatch()}
	if record.Shared {
		n.shared.close()
	}
	return n
}

// begin says whether the note was written in time. Otherwise there is none.
func (n *note) begin() bool {
	written := run(func() (ok bool, _ error) { return n.write(), nil })
	select {
	case <-written.done:
		ok, _ := written.wait()
		return ok
	case <-after(noteTime):
		n.log.Warn("a lease cannot be resumed: the state directory does not answer")
		n.forget()
		return false
	}
}

// write has what stands in the record noted. What cannot be noted cannot be resumed.
func (n *note) write() bool {
	n.disk.Lock()
	defer n.disk.Unlock()
	if n.gone {
		return false
	}
	err := n.kept.Write(n.key, n.record)
	if err != nil {
		n.log.Warn("a lease cannot be resumed: it cannot be noted", zap.Error(err))
		n.kept.Remove(n.key)
	}
	return err == nil
}

// forget has no later process come back to the lease, and returns at once.
func (n *note) forget() {
	go func() {
		n.disk.Lock()
		defer n.disk.Unlock()
		n.gone = true
		n.kept.Remove(n.key)
		n.forgotten.close()
	}()
}

// share says whether a later process knows that others were told of the lease. They must not be told before.
func (n *note) share() bool {
	n.sharing.Do(func() {
		go func() {
			n.disk.Lock()
			n.record.Shared = true
			n.disk.Unlock()
			n.write()
			n.shared.close()
		}()
	})
	if isClosed(n.shared.closed) {
		return true
	}
	select {
	case <-n.shared.closed:
		return true
	case <-after(noteTime):
		return false
	}
}
