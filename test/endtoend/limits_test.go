package endtoend

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// maxClientCnxns is how many connections from one address a server takes by default.
const maxClientCnxns = 60

func TestTheEnsemblesLimitOnConnectionsIsNamed(t *testing.T) {
	e := ensembleOf(t, quickTick)
	server := e.Server(1)
	only := quick(e)
	only.servers = []string{server.Address()}
	a := startSidecar(t, only)
	free := maxClientCnxns - server.ClientLink().Connections()
	var holders []*contender
	for i := range free {
		holder := a.acquire(t, fmt.Sprintf("limits/%d", i))
		holder.granted(t)
		holders = append(holders, holder)
	}
	for i := range 61 - free {
		began := now()
		expect(t, "ResourceExhausted CONNECTION_LIMIT", a.refused(t, fmt.Sprintf("limits/more-%d", i)))
		if took := now().since(began); took > 5*time.Second {
			t.Errorf("refused only after %v", took)
		}
	}
	for _, holder := range holders {
		if !holder.isOpen() {
			t.Fatalf("another hold ended with %s", holder.end)
		}
	}
	holders[0].release(t)
	awaitConnections(t, server.ClientLink().Connections, maxClientCnxns-1)
	a.acquire(t, "limits/again").granted(t)
	t.Logf("%d leases beside the sidecar's reader", free)
}

// awaitConnections waits until there are at most so many.
func awaitConnections(t *testing.T, count func() int, most int) {
	t.Helper()
	overdue := time.NewTimer(patient)
	defer overdue.Stop()
	for count() > most {
		select {
		case <-after(20 * time.Millisecond):
		case <-overdue.C:
			t.Fatalf("%d connections instead of %d", count(), most)
		}
	}
}

func TestAHostileDirectoryIsNotMinded(t *testing.T) {
	e := ensembleOf(t, quickTick)
	a, b := startSidecar(t, quick(e)), startSidecar(t, quick(e))
	direct := connect(t, e)
	const name = "hostile"
	a.acquire(t, name+"/first").granted(t) // the sidecar has made what the directory lies in
	litter(t, direct, directory(name))

	holder, waiter := pair(t, a, b, name)
	if ahead := waiter.queued(t); ahead != 1 {
		t.Errorf("told that %d are ahead", ahead)
	}
	view, err := b.locks.Get(t.Context(), &lockv1.GetRequest{Name: name})
	must(t, err)
	if len(view.GetView().GetHolders()) != 1 || len(view.GetView().GetWaiters()) != 1 {
		t.Errorf("the view shows %d holders and %d waiters", len(view.GetView().GetHolders()), len(view.GetView().GetWaiters()))
	}
	expect(t, "FailedPrecondition LOCK_HELD", b.refused(t, name, waiting(0)))
	_, err = b.operators.Revoke(t.Context(), &lockv1.RevokeRequest{Name: name, Grace: durationpb.New(0)})
	must(t, err)
	succeeds(t, holder, waiter, "Aborted LOCK_REVOKED")
	for _, mode := range []holdv1.Mode{holdv1.Mode_MODE_READ, holdv1.Mode_MODE_WRITE} {
		expect(t, "FailedPrecondition LOCK_KIND_MISMATCH", a.refused(t, name, as(mode)))
	}
}

// litter fills a directory with what is no contender's.
func litter(t *testing.T, direct *zk.Conn, dir string) {
	t.Helper()
	world := zk.WorldACL(zk.PermAll)
	_, err := direct.Create(dir, nil, 0, world)
	must(t, err)
	for _, child := range []string{
		"_c_x", "x", "_c_", "lock-", "-lock-", "_c_x-lock-", "_c_x-lock-123", "_c_x-lock-99999999999", "_c_x-lock-+000000001",
		"_c_x-__READ__", "lock-0000000000 ", "0000000000", "-0000000001", "ключ-0000000000", "__lock__", "%2F", "{}",
	} {
		_, err := direct.Create(dir+"/"+child, []byte("\xff\xfe not UTF-8 \x00"), 0, world)
		must(t, err)
	}
	// Children without a name and with one that is no UTF-8 are refused by the ensemble itself.
	for _, child := range []string{"", "\xff\xfe"} {
		if _, err := direct.Create(dir+"/"+child, nil, 0, world); err == nil {
			t.Fatalf("the ensemble takes a child named %q", child)
		}
	}
	var many []any
	for i := range 4000 {
		many = append(many, &zk.CreateRequest{Path: fmt.Sprintf("%s/stranger-%04d", dir, i), Acl: world})
	}
	for chunk := range slices.Chunk(many, 500) {
		_, err := direct.Multi(chunk...)
		must(t, err)
	}
}

func TestBadNamesAndSizesAreRefusedBeforeAnyWork(t *testing.T) {
	e := ensembleOf(t, quickTick)
	a := startSidecar(t, quick(e))
	direct := connect(t, e)
	before := children(t, direct, "/", "/sidekeeper", "/sidekeeper/locks")
	const invalid = "InvalidArgument INVALID_FIELD"
	long := strings.Repeat("x", 64)
	for _, name := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "zookeeper", "zookeeper/quota", "a\nb", "a\x00", "%2F",
		strings.Repeat("x", 1025),
	} {
		expect(t, invalid, a.refused(t, name))
		_, err := a.locks.Get(t.Context(), &lockv1.GetRequest{Name: name})
		expect(t, invalid, err)
	}
	for _, others := range []string{"a b", "ä", long + "x", strings.Join([]string{long, long, long, long}, "/"), "a:b", "a*"} {
		expect(t, invalid, a.refused(t, others))
		_, err := a.locks.Get(t.Context(), &lockv1.GetRequest{Name: others}) // another library's program may have given a lock that name
		expect(t, "OK", err)
	}
	for _, spoil := range []func(*lockv1.AcquireRequest){
		under(strings.Repeat("o", 129)),
		under("two\nlines"),
		func(r *lockv1.AcquireRequest) { r.Metadata = map[string]string{"key": strings.Repeat("v", 1<<10)} },
		func(r *lockv1.AcquireRequest) { r.LeaseId = "no id" },
		as(holdv1.Mode(99)),
		waiting(-time.Second),
		waiting(20 * 365 * 24 * time.Hour),
	} {
		expect(t, invalid, a.refused(t, "limits/good", spoil))
	}
	expect(t, "NotFound LEASE_NOT_FOUND", a.refused(t, "limits/good", func(r *lockv1.AcquireRequest) {
		r.LeaseId = strings.Repeat("0", 32)
	}))
	_, err := a.locks.Revoke(t.Context(), &lockv1.RevokeRequest{Name: "limits/good", Reason: strings.Repeat("r", 257)})
	expect(t, invalid, err)
	_, err = a.operators.Break(t.Context(), &lockv1.BreakRequest{Name: "limits/good"})
	expect(t, invalid, err)
	_, err = a.locks.Check(t.Context(), &lockv1.CheckRequest{})
	expect(t, invalid, err)
	_, err = a.leases.Check(t.Context(), &leasev1.CheckRequest{LeaseId: "x"})
	expect(t, invalid, err)
	for _, path := range children(t, direct, "/", "/sidekeeper", "/sidekeeper/locks") {
		if !slices.Contains(before, path) {
			t.Errorf("a refused call has made %s", path)
		}
	}
	longest := strings.Join([]string{long, long, long}, "/")
	a.acquire(t, longest, under(strings.Repeat("o", 128))).granted(t)
}

// children is what lies in these directories. Containers that earlier tests left vanish from them by and by.
func children(t *testing.T, direct *zk.Conn, dirs ...string) (paths []string) {
	t.Helper()
	for _, dir := range dirs {
		names, _, err := direct.Children(dir)
		must(t, err)
		for _, name := range names {
			paths = append(paths, dir+"/"+name)
		}
	}
	return paths
}
