package service_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/journal"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A resumable is a lease's stream at a sidecar that keeps its state in a directory.
type resumable struct {
	*scene
	dir    string
	stream leasev1.LeaseService_MultiplexClient
	cancel context.CancelFunc
	id     string
}

func newResumable(t *testing.T) *resumable {
	t.Helper()
	r := &resumable{dir: filepath.Join(t.TempDir(), "state")}
	kept, err := journal.Open(r.dir, "/", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	r.scene = newScene(t, func(o *service.Options) { o.Resumption = &service.Resumption{Journal: kept} })
	for ctx := r.context(); !r.opens(); { // it is opened without a record while the disk takes long
		r.must(ctx.Err())
	}
	return r
}

// opens opens a lease, and says whether it can be resumed. One that cannot is closed.
func (r *resumable) opens() bool {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.context())
	r.t.Cleanup(cancel)
	r.cancel = cancel
	var err error
	r.stream, err = r.leases.Multiplex(ctx)
	r.must(err)
	r.must(r.stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}}))
	first, err := r.stream.Recv()
	r.must(err)
	r.id = first.GetOpened().GetLeaseId()
	if !first.GetOpened().GetResumable() {
		cancel()
		<-r.ensemble.opened
		return false
	}
	return true
}

// records is what is in the directory of the lease.
func (r *resumable) records() string {
	files, err := filepath.Glob(filepath.Join(r.dir, "*.lease"))
	r.must(err)
	var text strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		r.must(err)
		text.Write(data)
	}
	return text.String()
}

// A session that was closed may not be come back to, however late the request to close it is carried out.
func TestALeaseThatEndsIsForgottenBeforeItsSessionIsClosed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *resumable){
		"closed": func(r *resumable) {
			_, err := r.leases.Close(r.context(), &leasev1.CloseRequest{LeaseId: r.id})
			r.must(err)
		},
		"closed by its stream":      func(r *resumable) { r.must(r.stream.CloseSend()) },
		"whose stream is cancelled": func(r *resumable) { r.cancel() },
		"whose sidecar stops":       func(r *resumable) { go func() { _ = r.stop() }() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newResumable(t)
			session := <-r.ensemble.opened
			if !strings.Contains(r.records(), `"session"`) || strings.Contains(r.records(), r.id) {
				t.Errorf("noted: %s", r.records())
			}
			end(r)
			<-session.Done()
			same(t, "noted when the session is closed", r.records(), "")
		})
	}
}

func TestALeaseThatOthersKnowOfIsNotedAsSuchBeforeTheyAreToldOfIt(t *testing.T) {
	t.Parallel()
	r := newResumable(t)
	isShared := func() bool { return strings.Contains(r.records(), `"shared":true`) }
	same(t, "Check over its own connection", r.checkedLease(r.id), "OK")
	same(t, "shared", isShared(), false)
	others := r.dial("unix://" + r.socket)
	_, err := others.leases.Check(r.context(), &leasev1.CheckRequest{LeaseId: r.id})
	r.must(err)
	same(t, "shared", isShared(), true)
}

func TestNothingIsResumedWhereNothingIsKept(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stream, err := s.leases.Multiplex(s.context())
	s.must(err)
	resume := &leasev1.Resume{LeaseId: strings.Repeat("0", 32)}
	s.must(stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Resume{Resume: resume}}))
	_, err = stream.Recv()
	same(t, "the end", outcome(err), "NotFound LEASE_NOT_FOUND")
}

// A hanging is a lease with a lock whose record cannot be written: its disk does not answer.
type hanging struct {
	*resumable
	carried *carrying
	session *standin.Session
}

func newHanging(t *testing.T) *hanging {
	t.Helper()
	h := &hanging{resumable: newResumable(t)}
	h.carried = &carrying{scene: h.scene, stream: h.stream, holds: map[uint64]string{}, tokens: map[uint64]int64{}}
	h.session = <-h.ensemble.opened
	h.carried.start(1, "orders")
	h.carried.sees("1 granted")
	h.must(syscall.Mkfifo(h.file(), 0o600)) // a writer that opens it waits for a reader
	t.Cleanup(h.answers)
	same(t, "Check over another connection", h.checked(h.dial("unix://"+h.socket), h.carried.holds[1]), "Unavailable NOT_RECORDED")
	return h
}

func (h *hanging) file() string { return filepath.Join(h.dir, service.Digest(h.id)+".new") }

// answers has the disk answer.
func (h *hanging) answers() { h.answersTo(h.file()) }

func (h *hanging) answersTo(file string) {
	if disk, err := os.OpenFile(file, os.O_RDWR, 0); err == nil {
		h.t.Cleanup(func() { disk.Close() })
	}
}

// meanwhile does what must not wait for the disk.
func (h *hanging) meanwhile(does func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		does()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		h.t.Error("what ends waits for the disk")
		h.answers()
		<-done
	}
}

func TestWhatIsLostEndsThoughTheDiskOfItsRecordHangs(t *testing.T) {
	t.Parallel()
	h := newHanging(t)
	same(t, "Check over its own", h.checked(h.callers, h.carried.holds[1]), "held")
	h.session.Expire()
	h.meanwhile(func() { h.carried.sees("1 ended 10 LEASE_LOST", "Aborted LEASE_LOST") })
	same(t, "Check of what is lost", h.checked(h.others, h.carried.holds[1]), "NotFound HOLD_NOT_FOUND")
}

// A later process could come back to the session before its record is deleted: only then it is closed. Others have the lock sooner.
func TestALockIsFreeThoughTheDiskOfItsLeasesRecordHangs(t *testing.T) {
	t.Parallel()
	h := newHanging(t)
	h.must(h.stream.CloseSend())
	h.meanwhile(func() {
		h.carried.sees("1 ended 10 LEASE_CLOSED", "OK")
		next := h.acquire(h.others, &lockv1.AcquireRequest{Name: "orders"})
		event := next.next()
		if strings.HasPrefix(event, "queued") {
			event = next.next()
		}
		same(t, "the next caller", event, "granted")
	})
	same(t, "closed while the record stands", isOver(h.session), false)
	h.answers()
	<-h.session.Done()
	same(t, "noted when the session is closed", h.records(), "")
}

func TestALeaseIsClosedThoughTheDiskOfItsRecordHangs(t *testing.T) {
	t.Parallel()
	h := newHanging(t)
	h.meanwhile(func() {
		_, err := h.leases.Close(h.context(), &leasev1.CloseRequest{LeaseId: h.id})
		same(t, "Close", outcome(err), "OK")
		same(t, "contenders", h.contenders("orders"), 0)
	})
	same(t, "closed while the record stands", isOver(h.session), false)
}

// A disk that is full for a while costs no lease its record: others are told later.
func TestALeaseWhoseSharingCannotBeNotedKeepsItsRecord(t *testing.T) {
	t.Parallel()
	r := newResumable(t)
	carried := &carrying{scene: r.scene, stream: r.stream, holds: map[uint64]string{}, tokens: map[uint64]int64{}}
	carried.start(1, "orders")
	carried.sees("1 granted")
	record := filepath.Join(r.dir, service.Digest(r.id))
	r.must(os.MkdirAll(filepath.Join(record+".new", "x"), 0o700))
	others := r.dial("unix://" + r.socket)
	same(t, "Check that cannot be noted", r.checked(others, carried.holds[1]), "Unavailable NOT_RECORDED")
	noted, err := os.ReadFile(record + ".lease")
	r.must(err)
	same(t, "the record says that others were told", strings.Contains(string(noted), "shared"), false)
	r.must(os.RemoveAll(record + ".new"))
	same(t, "Check that is noted", r.checked(others, carried.holds[1]), "held")
	noted, err = os.ReadFile(record + ".lease")
	r.must(err)
	same(t, "the record says that others were told", strings.Contains(string(noted), `"shared":true`), true)
}

func isOver(session *standin.Session) bool {
	select {
	case <-session.Done():
		return true
	default:
		return false
	}
}
