package zookeeper

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// errRestored is why a session ends that has found the ensemble to be older than before.
var errRestored = fmt.Errorf("%w: the ensemble was restored from an older state", recipes.ErrSessionEnded)

// A highWater is the newest state that the ensemble has shown to any session of a client. What is asked for later gets a number that is
// larger. If it does not, the ensemble's servers were restored from an older state: what they have granted since is forgotten, and the
// numbers, which are fencing tokens, repeat. Then nothing is believed until they have grown beyond what was shown, by themselves or since
// the ensemble's epoch was set.
type highWater struct {
	zxid     atomic.Int64
	restored atomic.Bool // the newest transaction was not larger
}

// rise takes in what an answer has shown. It returns whether the ensemble has caught up with it.
func (h *highWater) rise(zxid int64) (caughtUp bool) {
	for {
		known := h.zxid.Load()
		if zxid <= known {
			return false
		}
		if h.zxid.CompareAndSwap(known, zxid) {
			return h.restored.Load() && h.restored.CompareAndSwap(true, false)
		}
	}
}

// transactionKinds are the requests of our own that take a number, whatever their verdict.
var transactionKinds = map[int32]bool{
	opCreate: true, opCreate2: true, opCreateContainer: true, opDelete: true, opSetData: true, opMulti: true,
}

// compare ends the session if the answer to a request is of a transaction that is no newer than what had been shown when it was sent. It returns
// whether the answer may be believed.
func (s *Session) compare(due question, reply []byte) (believed bool) {
	zxid, code := int64(binary.BigEndian.Uint64(reply[4:])), int32(binary.BigEndian.Uint32(reply[12:]))
	if s.client.shown.rise(zxid) {
		s.log.Warn("the ensemble has caught up with the state that it had before it was restored", zap.Int64("zxid", zxid))
	}
	known := due.batch.known
	if zxid > known || zxid <= 0 || s.proof.static || !transactionKinds[due.kind] || code != 0 && !isCommitted(libraryError(code)) {
		return true
	}
	if !s.client.shown.restored.Swap(true) {
		s.log.Error("the ensemble was restored from an older state: the sidecar grants nothing until fencing tokens are larger than before; "+
			"see the runbook", zap.Int64("zxid", zxid), zap.Int64("before", known))
		s.client.config.Restored()
	}
	s.lose(errRestored)
	return false
}
