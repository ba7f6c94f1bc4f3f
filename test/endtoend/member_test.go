package endtoend

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// membersPerHost have one lease together: a server of the ensemble takes 60 connections from one address.
const membersPerHost = 5

// A gathering is a group with many members and watchers on several sidecars.
type gathering struct {
	*census

	setup    setup
	sidecars []*sidecar
	hosts    []*host
	homes    []int // of the hosts: which sidecar
	watchers []*watcher
	eyes     []int // of the watchers: which sidecar
}

func TestEveryViewOfAGroupConvergesAndNobodyFlapsWhateverIsKilled(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	with.flags = []string{"--heartbeat=500ms"}
	g := newGathering(t, with)
	g.settled(t, "all have joined", now())
	for range max(1, *rounds/3) {
		g.killHosts(t)
		leader, err := e.AwaitQuorum(t.Context())
		must(t, err)
		leader.Kill()
		g.killHosts(t) // which is seen when there is another leader
		repair(t, e)
		g.killSidecar(t)
	}
	g.verify(t)
}

func newGathering(t *testing.T, with setup) *gathering {
	t.Helper()
	g := &gathering{census: newCensus(fmt.Sprintf("gathering/%d", rand.Uint32())), setup: with}
	for range 4 {
		g.sidecars = append(g.sidecars, startSidecar(t, with))
	}
	for i := range *watchers {
		g.watchers, g.eyes = append(g.watchers, g.watch(t, g.sidecars[i%4])), append(g.eyes, i%4)
	}
	for i := range *crowd / membersPerHost {
		var names []string
		for j := range membersPerHost {
			names = append(names, fmt.Sprintf("m%d-%d", i, j))
		}
		g.hosts, g.homes = append(g.hosts, g.start(t, g.sidecars[i%4], names)), append(g.homes, i%4)
	}
	return g
}

// settled returns when all watchers see exactly who is there.
func (g *gathering) settled(t *testing.T, what string, since moment) {
	t.Helper()
	for _, w := range g.watchers {
		w.converge(t, what)
	}
	t.Logf("%s: %d members, all %d views right after %v", what, len(g.now()), len(g.watchers), now().since(since))
}

// killHosts cuts every fifth host off, waits until all have seen it, and starts it again.
func (g *gathering) killHosts(t *testing.T) {
	t.Helper()
	began := now()
	for i := 0; i < len(g.hosts); i += 5 {
		g.cut(g.hosts[i])
	}
	g.settled(t, "callers were killed", began)
	for i := 0; i < len(g.hosts); i += 5 {
		g.hosts[i] = g.start(t, g.sidecars[g.homes[i]], g.hosts[i].names)
	}
	g.settled(t, "they are back", now())
}

// killSidecar kills one with all that depends on it. Its callers come back to others and wait for their names.
func (g *gathering) killSidecar(t *testing.T) {
	t.Helper()
	const victim = 3
	began := now()
	for i, home := range g.homes {
		if home == victim {
			g.doom(g.hosts[i])
		}
	}
	g.sidecars[victim].kill()
	g.sidecars[victim] = startSidecar(t, g.setup)
	for i, home := range g.homes {
		if home == victim {
			g.hosts[i].stop()
			g.hosts[i] = g.start(t, g.sidecars[i%3], g.hosts[i].names)
		}
	}
	for i, eye := range g.eyes {
		if eye == victim {
			g.watchers[i].cancel()
			g.watchers[i] = g.watch(t, g.sidecars[victim])
		}
	}
	g.settled(t, "a sidecar was killed", began)
}

func TestAKilledCallersMemberIsGoneForOthersAtOnce(t *testing.T) {
	sidecars := quickSidecars(t, 2)
	c := newCensus(fmt.Sprintf("killed/%d", rand.Uint32()))
	w := c.watch(t, sidecars[1])
	var times []time.Duration
	for i := range 5 * *rounds {
		caller := startCaller(t, sidecars[0], callerOrder{Owner: fmt.Sprint("m", i), Group: c.group})
		line, _ := caller.awaitLine(t, "joined", patient)
		var incarnation int64
		_, err := fmt.Sscan(line, &incarnation)
		must(t, err)
		c.joined(fmt.Sprint("m", i), incarnation)
		w.converge(t, "a caller has joined")
		killed := now()
		c.doom(&host{names: []string{fmt.Sprint("m", i)}})
		caller.kill()
		w.converge(t, "it was killed")
		c.mu.Lock()
		times = append(times, c.left[len(c.left)-1].at.since(killed))
		c.mu.Unlock()
	}
	c.verify(t)
	slices.Sort(times)
	median := times[len(times)/2]
	t.Logf("a killed caller's member was gone for others after %v (median of %d), %v at most", median, len(times), times[len(times)-1])
	if median > 2*time.Second { // a session takes ten to expire
		t.Error("that is not at once")
	}
}

func TestEveryCallAboutGroupsWorksOnARealEnsemble(t *testing.T) {
	sidecars := quickSidecars(t, 2)
	here, there := sidecars[0], sidecars[1]
	group := fmt.Sprintf("calls/%d", rand.Uint32())
	ctx := t.Context()
	create := func() error {
		_, err := here.groups().Create(ctx, &membershipv1.CreateRequest{Group: group})
		return err
	}
	remove := func() error {
		_, err := there.groups().Delete(ctx, &membershipv1.DeleteRequest{Group: group})
		return err
	}
	expect(t, "NotFound GROUP_NOT_FOUND", remove())
	c := newCensus(group)
	w := c.watch(t, there)
	join := func(s *sidecar, conflict membershipv1.OnConflict) *joinStream {
		return s.join(t, &membershipv1.JoinRequest{
			Group: group, Member: "a", OnConflict: conflict, Metadata: map[string]string{"port": "1"},
		})
	}
	first := join(here, membershipv1.OnConflict_ON_CONFLICT_REJECT)
	c.joined("a", first.joined(t))
	w.converge(t, "the first has joined")
	expect(t, "FailedPrecondition GROUP_NOT_EMPTY", create())
	expect(t, "FailedPrecondition GROUP_NOT_EMPTY", remove())
	join(there, membershipv1.OnConflict_ON_CONFLICT_REJECT).ends(t, "AlreadyExists MEMBER_EXISTS")

	_, err := here.groups().Update(ctx, &membershipv1.UpdateRequest{
		Group: group, Member: "a", Metadata: map[string]string{"port": "2"},
	})
	must(t, err)
	if got := first.next(t).GetUpdated().GetMetadata()["port"]; got != "2" {
		t.Errorf("the member was told port %q", got)
	}
	_, err = there.groups().Update(ctx, &membershipv1.UpdateRequest{Group: group, Member: "a"})
	expect(t, "NotFound MEMBER_NOT_FOUND", err)
	view, err := here.groups().Get(ctx, &membershipv1.GetRequest{Group: group})
	must(t, err)
	if got := view.GetView().GetMembers()[0].GetMetadata()["port"]; got != "2" {
		t.Errorf("the view shows port %q", got)
	}

	second := join(there, membershipv1.OnConflict_ON_CONFLICT_REPLACE)
	incarnation := second.joined(t)
	first.ends(t, "Aborted MEMBER_REPLACED")
	c.joined("a", incarnation)
	w.converge(t, "the second has joined")
	third := join(here, membershipv1.OnConflict_ON_CONFLICT_WAIT)
	groups, err := there.groups().List(ctx, &membershipv1.ListRequest{Prefix: group})
	must(t, err)
	if len(groups.GetGroups()) != 1 || groups.GetGroups()[0].GetMembers() != 1 {
		t.Errorf("the list is %v", groups)
	}
	deleted, err := membershipv1.NewMembershipServiceClient(dial(t, here.operatorAddress())).Delete(ctx, &membershipv1.DeleteRequest{
		Group: group, Force: true, Reason: "moved", ForceAfter: durationpb.New(10 * time.Second),
	})
	if told(err) == "FailedPrecondition GROUP_NOT_EMPTY" { // the third came in between each time
		t.Log("its members came back faster than they were removed")
	} else {
		must(t, err)
	}
	second.ends(t, "Aborted MEMBER_REMOVED")
	third.joined(t)
	if deleted.GetForced() != 0 {
		t.Errorf("%d were removed by force", deleted.GetForced())
	}
	third.cancel()
	c.mu.Lock()
	clear(c.present)
	c.mu.Unlock()
	w.converge(t, "the third has left")
	must(t, create())
	must(t, create())
	must(t, remove())
	expect(t, "NotFound GROUP_NOT_FOUND", remove())
}
