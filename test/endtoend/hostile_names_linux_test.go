package endtoend

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// The longest transaction of a session is its end, which names all that it owned: one of 2.4 MB stops an ensemble
// (ZOOKEEPER-4306). However many locks with however long names a caller asks for, no session comes near that.
func TestNoCallerMakesASessionThatIsTooLargeToEnd(t *testing.T) {
	limit := 64 << 10
	if *hostility >= 10*time.Second {
		limit = 256 << 10 // as by default, which takes long to reach
	}
	e := ensembleOf(t, quickTick)
	s := startSidecar(t, guarded(e, fmt.Sprintf("--ephemeral-bytes=%dKiB", limit>>10)))
	direct := connect(t, e)
	stream, err := s.leases.Open(t.Context(), &leasev1.OpenRequest{})
	must(t, err)
	opened, err := stream.Recv()
	must(t, err)
	lease := opened.GetOpened().GetLeaseId()

	granted := s.takeMany(t, lease, limit)
	largest, owner := 0, int64(0) // others of the shared ensemble own little
	for session, bytes := range owned(t, direct) {
		if bytes > largest {
			largest, owner = bytes, session
		}
	}
	t.Logf("%d locks were granted, whose session owns %d bytes of paths", granted, largest)
	if largest > limit || largest < limit*9/10 {
		t.Errorf("a session owns %d bytes of paths, with a limit of %d", largest, limit)
	}
	_, err = s.leases.Close(t.Context(), &leasev1.CloseRequest{LeaseId: lease})
	must(t, err)
	if left := owned(t, direct)[owner]; left > 0 {
		t.Errorf("left are %d bytes", left)
	}
	s.acquire(t, "hostile/after").granted(t)
}

// takeMany takes locks with the longest names there are until it is refused, and returns how many were granted.
func (s *sidecar) takeMany(t *testing.T, lease string, limit int) (granted int) {
	t.Helper()
	const atOnce = 16
	segment := strings.Repeat("x", 60)
	for first := 0; first < limit; first += atOnce {
		var contenders []*contender
		for i := range atOnce {
			name := fmt.Sprintf("%s/%s/%s/%d", segment, segment, segment, first+i)
			contenders = append(contenders, s.acquire(t, name, func(r *lockv1.AcquireRequest) { r.LeaseId = lease }))
		}
		refused := false
		for _, c := range contenders {
			if _, ok := c.events.wait(t, "granted", patient, isGranted); ok {
				granted++
				continue
			}
			c.awaitEnd(t, "ResourceExhausted EPHEMERAL_BYTES_LIMIT")
			refused = true
		}
		if refused {
			return granted
		}
	}
	t.Fatal("never refused")
	return granted
}

// owned is how many bytes of paths below the locks' directory each session owns.
func owned(t *testing.T, direct *zk.Conn) map[int64]int {
	t.Helper()
	const root = "/sidekeeper/locks"
	_, err := direct.Sync("/")
	must(t, err)
	locks, _, err := direct.Children(root)
	must(t, err)
	bytes := map[int64]int{}
	for _, lock := range locks {
		places, _, err := direct.Children(root + "/" + lock)
		if errors.Is(err, zk.ErrNoNode) {
			continue // a container that has vanished
		}
		must(t, err)
		for _, place := range places {
			path := root + "/" + lock + "/" + place
			there, stat, err := direct.Exists(path)
			must(t, err)
			if there && stat.EphemeralOwner != 0 {
				bytes[stat.EphemeralOwner] += len(path)
			}
		}
	}
	return bytes
}

// What a caller is given to name its lease and its hold is worth nothing to anybody else.
func TestIDsOfAnotherCallerOpenNothing(t *testing.T) {
	e := ensembleOf(t, quickTick)
	s := startSidecar(t, guarded(e, "--listen=127.0.0.1:0"))
	address, _ := s.awaitLine(t, "listening on 127.0.0.1:", patient)
	thief := dial(t, "127.0.0.1:"+address)
	f := befriend(t, s)
	hold := f.held.granted(t).id

	_, err := leasev1.NewLeaseServiceClient(thief).Check(t.Context(), &leasev1.CheckRequest{LeaseId: f.lease})
	expect(t, "NotFound LEASE_NOT_FOUND", err)
	_, err = leasev1.NewLeaseServiceClient(thief).Close(t.Context(), &leasev1.CloseRequest{LeaseId: f.lease})
	expect(t, "NotFound LEASE_NOT_FOUND", err)
	stream, err := lockv1.NewLockServiceClient(thief).Acquire(t.Context(), &lockv1.AcquireRequest{Name: "stolen", LeaseId: f.lease})
	if err == nil {
		_, err = stream.Recv()
	}
	expect(t, "NotFound LEASE_NOT_FOUND", err)
	_, err = lockv1.NewLockServiceClient(thief).Release(t.Context(), &lockv1.ReleaseRequest{HoldId: hold})
	expect(t, "NotFound HOLD_NOT_FOUND", err)
	_, err = lockv1.NewLockServiceClient(thief).Check(t.Context(), &lockv1.CheckRequest{HoldIds: []string{hold}})
	expect(t, "NotFound HOLD_NOT_FOUND", err)
	f.isUnharmed(t)
}
