package service_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/sink"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A disk takes the lines of an audit log, unless it is full or hangs.
type disk struct {
	mu    sync.Mutex
	text  bytes.Buffer
	full  error
	hangs chan struct{} // until it is closed
}

func (d *disk) Write(lines []byte) (int, error) {
	d.mu.Lock()
	hangs := d.hangs
	d.mu.Unlock()
	<-hangs
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full != nil {
		return 0, d.full
	}
	return d.text.Write(lines)
}

func (d *disk) is(full error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

func (d *disk) hang() (goOn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	hangs := make(chan struct{})
	d.hangs = hangs
	return func() { close(hangs) }
}

func (d *disk) count(event string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Count(d.text.String(), fmt.Sprintf("%q", event))
}

// onDisk runs a test in virtual time with an audit log that must be complete.
func onDisk(t *testing.T, test func(t *testing.T, s *scene, d *disk)) {
	t.Helper()
	d, to := &disk{}, (*sink.Sink)(nil)
	virtually(t, func(t *testing.T, s *scene) {
		defer func() { to.Close() }()
		test(t, s, d)
	}, func(o *service.Options) {
		d.hang()()
		to = sink.New(d)
		lines := to.Log(sink.Options{Wait: sink.Brief})
		o.Audit = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), lines, zap.InfoLevel))
		o.AuditStrict = lines
	})
}

// Where grants must be told, a caller hears of none before its line is written. What ends does so all the same.
func TestNothingIsGrantedWhileTheAuditMustBeWrittenAndCannot(t *testing.T) {
	t.Parallel()
	onDisk(t, func(t *testing.T, s *scene, d *disk) {
		first := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		same(t, "lines about the grant", d.count("grant"), 1)
		waiter := s.acquire(s.others, &lockv1.AcquireRequest{Name: "orders"})
		waiter.sees("queued 1")
		d.is(errors.New("no space left on device"))
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "stock"}).sees("Unavailable NOT_RECORDED")
		s.awaitContenders("stock", 0)
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "stock"}).sees("Unavailable NOT_RECORDED")
		same(t, "contenders for what is refused", s.contenders("stock"), 0)
		same(t, "Check", s.checked(s.callers, first.hold), "held")
		_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: first.hold})
		same(t, "release", outcome(err), "OK")
		waiter.sees("Unavailable NOT_RECORDED")
		s.awaitContenders("orders", 0)
		d.is(nil)
		<-time.After(2 * time.Second) // the sidecar tries it again each second
		s.hold(s.others, &lockv1.AcquireRequest{Name: "orders"})
		same(t, "lines about grants", d.count("grant"), 2)
	})
}

func TestAGrantWaitsForADiskThatHangsAndNoEndDoes(t *testing.T) {
	t.Parallel()
	onDisk(t, func(t *testing.T, s *scene, d *disk) {
		lost := s.hold(s.callers, &lockv1.AcquireRequest{Name: "lost"})
		session := <-s.ensemble.opened
		held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "held"})
		<-s.ensemble.opened
		goOn, began := d.hang(), time.Now()
		ask := func(name string) (*acquiring, *standin.Session) {
			asked := s.acquire(s.callers, &lockv1.AcquireRequest{Name: name})
			synctest.Wait()
			same(t, "contenders for "+name, s.contenders(name), 1)
			return asked, <-s.ensemble.opened
		}
		waits, _ := ask("orders")
		left, _ := ask("left")
		expired, its := ask("expired")
		left.cancel()
		s.awaitContenders("left", 0)
		its.Expire()
		expired.sees("Unavailable ENSEMBLE_UNREACHABLE")
		session.Expire()
		lost.sees("Aborted LEASE_LOST")
		_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: held.hold})
		same(t, "release", outcome(err), "OK")
		same(t, "they wait", time.Since(began) >= time.Second, false)
		waits.sees("Unavailable NOT_RECORDED")
		same(t, "it waits", time.Since(began), time.Second+sink.Brief)
		s.awaitContenders("orders", 0)
		goOn()
	})
}

// A grant of which its caller was not told is no hold: nobody waits for its lease's validity, nor for its delay.
func TestAGrantThatIsNotRecordedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	onDisk(t, func(t *testing.T, s *scene, d *disk) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		same(t, "Check of the lease", s.checkedLease(lease.id), "OK")
		d.is(errors.New("no space left on device"))
		refused := time.Now()
		asked := &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id, LockDelay: lasting(30 * time.Second)}
		s.acquire(s.callers, asked).sees("Unavailable NOT_RECORDED")
		s.awaitContenders("orders", 0)
		same(t, "its place stays", time.Since(refused) >= time.Second, false)
		d.is(nil)
		<-time.After(2 * time.Second) // the sidecar tries it again each second
		s.hold(s.others, &lockv1.AcquireRequest{Name: "orders"})
		same(t, "its delay is kept", time.Since(refused) >= 5*time.Second, false)
	})
}

func TestAGrantThatIsNotRecordedBeforeTheSidecarStopsCanBeAskedForAgain(t *testing.T) {
	t.Parallel()
	onDisk(t, func(t *testing.T, s *scene, d *disk) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		goOn := d.hang()
		defer goOn()
		waits := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		synctest.Wait()
		same(t, "contenders", s.contenders("orders"), 1)
		drained := s.drain(100 * time.Millisecond)
		waits.sees("Unavailable SIDECAR_STOPPING")
		lease.sees("Aborted SIDECAR_STOPPING")
		s.must(<-drained)
	})
}

func TestAGrantWhosePlaceIsGoneBeforeItIsRecordedIsNotTold(t *testing.T) {
	t.Parallel()
	onDisk(t, func(t *testing.T, s *scene, d *disk) {
		for range 20 {
			goOn := d.hang()
			waits := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
			synctest.Wait()
			<-s.ensemble.opened
			<-time.After(300 * time.Millisecond)
			s.must(s.ensemble.memory.Delete(ordersPath + "/" + s.ensemble.memory.Names(ordersPath)[0]))
			goOn()
			waits.sees("Aborted LOCK_BROKEN")
			<-time.After(2 * time.Second)
		}
	})
}

// answers are those of an audit log, one after the other.
type answers func() bool

func (a answers) Takes() bool { return a() }

func (a answers) Missing() int { return 0 }

func (a answers) Written(_ int, then func(all bool)) { then(a()) }

// What counts for others as soon as it is made is refused before that, and not afterwards.
func TestWhatOthersCountOnIsNotRefusedWhenTheAuditBreaksMeanwhile(t *testing.T) {
	t.Parallel()
	var left atomic.Int32 // questions that are answered with yes
	s := newScene(t, func(o *service.Options) { o.AuditStrict = answers(func() bool { return left.Add(-1) >= 0 }) })
	agreement := s.begun(s.callers, "a", "b")
	left.Store(1)
	s.voting(s.callers, agreement, "a", "").sees("voted")
	left.Store(1)
	s.enter(s.callers, &barrierv1.EnterRequest{Name: "load", Size: 1}).sees("entered")
	left.Store(1)
	s.join(s.callers, &membershipv1.JoinRequest{Member: "a"}).sees("joined")
	left.Store(1)
	s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"}).sees("Unavailable NOT_RECORDED")
	s.voting(s.callers, agreement, "b", "").sees("Unavailable NOT_RECORDED")
}
