package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

const denied = "PermissionDenied POLICY_DENIED"

// usual are all actions of some services that are not for operators.
func usual(services ...string) map[string]bool {
	actions := map[string]bool{}
	for _, asked := range askings() {
		of, _, _ := strings.Cut(asked.action, "/")
		if !asked.operator && slices.Contains(services, of) {
			actions[asked.action] = true
		}
	}
	return actions
}

// everyOther is every second action, those for operators among them, by its name.
func everyOther() (names []string, actions map[string]bool) {
	actions = map[string]bool{}
	for i, asked := range askings() {
		if i%2 == 1 {
			names, actions[asked.action] = append(names, asked.action), true
		}
	}
	return names, actions
}

func matrix() []grant {
	const leases, locks, sequences, groups, keys = "sidekeeper.lease.v1.LeaseService", "sidekeeper.lock.v1.LockService",
		"sidekeeper.sequence.v1.SequenceService", "sidekeeper.membership.v1.MembershipService", "sidekeeper.config.v1.ConfigService"
	locksAndBreak := usual(locks)
	locksAndBreak[locks+"/Break"] = true
	named, actions := everyOther()
	return []grant{
		{
			identity: "socket:app", callers: []string{"socket:app"},
			methods: []string{leases + "/*", locks + "/*", sequences + "/*", groups + "/*", keys + "/*"},
			actions: usual(leases, locks, sequences, groups, keys), prefixes: []string{"billing"}, covers: []string{"billing", "billing/x"},
		},
		{identity: "socket:web", callers: []string{"socket:web"}, methods: []string{locks + "/*", locks + "/Break"}, actions: locksAndBreak},
		{
			identity: "socket:web", callers: []string{"socket:web"}, methods: []string{leases + "/*"}, actions: usual(leases),
			prefixes: []string{"*"},
		},
		{
			identity: "spiffe://test/ns/web/*", callers: []string{"spiffe://test/ns/web/shop"}, methods: []string{keys + "/*", sequences + "/*"},
			actions: usual(keys, sequences), prefixes: []string{"billing/x", "stock"}, covers: []string{"billing/x", "stock"},
		},
		{
			identity: "dns:batch.test", callers: []string{"dns:batch.test"}, methods: named, actions: actions,
			prefixes: []string{"stock"}, covers: []string{"stock"},
		},
		{
			identity: "*", callers: []string{
				"socket:app", "socket:web", "spiffe://test/ns/web/shop", "spiffe://test/ns/website/shop", "dns:batch.test", "uid:" + uid(),
			},
			methods: []string{groups + "/Get", groups + "/Watch"}, prefixes: []string{"public"}, covers: []string{"public"},
			actions: map[string]bool{groups + "/Get": true, groups + "/Watch": true},
		},
	}
}

// Every caller, on every kind of listener, meets every use of every method under every kind of name with what the rules say.
func TestEveryCallIsAnsweredAsThePolicySays(t *testing.T) {
	t.Parallel()
	grants := matrix()
	s := newPolicyScene(t, policyOf(grants))
	calls := map[bool]int{}
	for _, from := range identitiesOf(s) {
		for _, asked := range askings() {
			names := []string{"billing", "billing/x", "billings", "stock", "public", ""}
			if asked.nameless || asked.whole {
				names = names[:1]
			}
			for _, name := range names {
				want := asked.ends || allowed(grants, from, asked, name)
				calls[want]++
				got := s.call(from, asked, name)
				if passed := got != denied; passed != want || strings.Contains(got, "OPERATOR_ONLY") || strings.HasPrefix(got, "Internal") {
					t.Errorf("%s %s %q: %s; allowed: %v", from, asked.action, name, got, want)
				}
			}
		}
	}
	if calls[true] < 300 || calls[false] < 700 {
		t.Errorf("%d calls that are allowed and %d that are not are no matrix", calls[true], calls[false])
	}
}

// A method that is added without saying what it is about is denied, and fails here.
func TestEveryMethodSaysWhatItIsAboutAndIsDeniedToWhoIsNotListed(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, "rules: []")
	asked := map[string]bool{}
	for _, asking := range askings() {
		asked[asking.method] = true
		for _, from := range identitiesOf(s) {
			if from == "operator" {
				continue
			}
			want := denied
			if asking.ends {
				want = "NotFound HOLD_NOT_FOUND"
			}
			same(t, from+" "+asking.action, s.call(from, asking, "billing"), want)
		}
	}
	for _, method := range s.methods() {
		if !slices.Contains(server.KnownMethods(), method) || !asked[method] {
			t.Errorf("%s: nothing says what it is about, or how the tests ask it", method)
		}
	}
	same(t, "methods", len(s.methods()), len(server.KnownMethods()))
	same(t, "a method that nothing is known of", outcomeOf(server.Judged(s.server, "uid:1", "/sidekeeper.new.v1.NewService/Call")), denied)
}

func outcomeOf(err error) string {
	told, _ := service.StatusOf(err)
	return outcome(told.Err())
}

func TestHealthNeedsNoRule(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, "rules: []")
	_, err := healthpb.NewHealthClient(s.callers["socket:app"]).Check(within(t), &healthpb.HealthCheckRequest{})
	must(t, err)
	watch, err := healthpb.NewHealthClient(s.callers["socket:app"]).Watch(within(t), &healthpb.HealthCheckRequest{})
	must(t, err)
	_, err = watch.Recv()
	must(t, err)
}

func TestADenialTellsTheCallerAsWhomItWasSeenAndNothingOfTheName(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, "rules: []")
	must(t, s.callers["operator"].Invoke(within(t), configv1.ConfigService_Put_FullMethodName,
		&configv1.PutRequest{Key: "there", Content: &configv1.PutRequest_Text{Text: "v"}}, &configv1.PutResponse{}))
	var messages []string
	for _, key := range []string{"there", "elsewhere", "//", ""} {
		_, err := configv1.NewConfigServiceClient(s.callers["socket:app"]).Get(within(t), &configv1.GetRequest{Key: key})
		messages = append(messages, status.Convert(err).Message())
	}
	same(t, "messages", slices.Compact(messages),
		"[POLICY_DENIED: denied by the policy: no rule allows socket:app sidekeeper.config.v1.ConfigService/Get for what it names: "+
			"have an operator add one]")
}

func TestWhoGuardsWithATicketMustBeAllowedToReadItsLock(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, `
rules:
- {identities: ["socket:app"], methods: ["sidekeeper.config.v1.ConfigService/*", "sidekeeper.lock.v1.LockService/Get"], prefixes: [billing]}
- {identities: ["socket:web"], methods: ["sidekeeper.config.v1.ConfigService/Put"], prefixes: [billing]}
`)
	put := func(from, lock string) string {
		guard := &holdv1.Guard{Hold: &holdv1.Guard_Ticket{Ticket: &holdv1.Ticket{Lock: lock, FencingToken: 1}}}
		request := &configv1.PutRequest{
			Key: "billing/a", Content: &configv1.PutRequest_Text{Text: "v"}, Guards: []*holdv1.Guard{guard},
		}
		_, err := configv1.NewConfigServiceClient(s.callers[from]).Put(within(t), request)
		return outcome(err)
	}
	same(t, "its own lock", put("socket:app", "billing/lock"), "FailedPrecondition GUARD_LOST")
	same(t, "another lock", put("socket:app", "stock"), denied)
	same(t, "a lock that it may not read", put("socket:web", "billing/lock"), denied)
}

const keysOfBilling = `
rules:
- {identities: ["socket:app"], methods: ["sidekeeper.config.v1.ConfigService/*"], prefixes: [billing, stock]}
`

func TestEveryKeyOfACommitAndOfAWatchMustBeAllowed(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, keysOfBilling)
	client := configv1.NewConfigServiceClient(s.callers["socket:app"])
	put := func(key string) *configv1.Operation {
		return &configv1.Operation{Operation: &configv1.Operation_Put{
			Put: &configv1.PutRequest{Key: key, Content: &configv1.PutRequest_Text{Text: "v"}},
		}}
	}
	remove := &configv1.Operation{Operation: &configv1.Operation_Delete{Delete: &configv1.DeleteRequest{Key: "secret"}}}
	check := &configv1.Operation{Operation: &configv1.Operation_Check{Check: &configv1.CheckRequest{Key: "secret"}}}
	for want, operations := range map[string][][]*configv1.Operation{
		"OK":   {{put("billing/a"), put("stock/b")}},
		denied: {{put("billing/a"), put("secret")}, {put("billing/a"), remove}, {check, put("billing/a")}, {put("billing/a"), {}}},
	} {
		for _, each := range operations {
			_, err := client.Commit(within(t), &configv1.CommitRequest{Operations: each})
			same(t, fmt.Sprint("commit of ", each), outcome(err), want)
		}
	}
	for want, requests := range map[string][]*configv1.WatchRequest{
		"OK":   {{Keys: []string{"billing/a", "stock"}}, {Prefix: "billing"}},
		denied: {{Keys: []string{"billing/a", "secret"}}, {Keys: []string{""}}, {Prefix: ""}, {Prefix: "secret"}, {Prefix: "bill"}},
	} {
		for _, request := range requests {
			stream, err := client.Watch(within(t), request)
			must(t, err)
			_, err = stream.Recv()
			same(t, fmt.Sprint("watch of ", request), outcome(err), want)
		}
	}
}

func TestWhoMayBreakByARuleBreaksOnTheCallersListener(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, `
rules:
- {identities: ["socket:app"], methods: ["sidekeeper.lock.v1.LockService/*"]}
- {identities: ["dns:batch.test"], methods: ["sidekeeper.lock.v1.LockService/Break", "sidekeeper.lock.v1.LockService/Revoke:grace"]}
`)
	app, batch := lockv1.NewLockServiceClient(s.callers["socket:app"]), lockv1.NewLockServiceClient(s.callers["dns:batch.test"])
	hold, err := app.Acquire(within(t), &lockv1.AcquireRequest{Name: "orders"})
	must(t, err)
	granted, err := hold.Recv()
	must(t, err)
	order := &lockv1.BreakRequest{Name: "orders", FencingToken: granted.GetGranted().GetFencingToken(), Reason: "stuck"}
	_, err = app.Break(within(t), order)
	same(t, "Break by its holder", outcome(err), denied)
	_, err = batch.Revoke(within(t), &lockv1.RevokeRequest{Name: "orders"})
	same(t, "Revoke without a grace", outcome(err), denied)
	_, err = batch.Break(within(t), order)
	must(t, err)
	_, err = hold.Recv()
	same(t, "end of the hold", outcome(err), "Aborted LOCK_BROKEN")
}

func TestAStolenLeaseIsOfNoUse(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, `rules: [{identities: ["*"], methods: ["sidekeeper.lock.v1.LockService/*", "sidekeeper.lease.v1.LeaseService/*"]}]`)
	lease, err := leasev1.NewLeaseServiceClient(s.callers["socket:app"]).Open(within(t), &leasev1.OpenRequest{})
	must(t, err)
	opened, err := lease.Recv()
	must(t, err)
	id := opened.GetOpened().GetLeaseId()
	hold, err := lockv1.NewLockServiceClient(s.callers["socket:app"]).Acquire(within(t), &lockv1.AcquireRequest{Name: "orders", LeaseId: id})
	must(t, err)
	granted, err := hold.Recv()
	must(t, err)
	for _, thief := range identitiesOf(s) {
		if thief == "socket:app" {
			continue
		}
		locks, leases := lockv1.NewLockServiceClient(s.callers[thief]), leasev1.NewLeaseServiceClient(s.callers[thief])
		stolen, err := locks.Acquire(within(t), &lockv1.AcquireRequest{Name: "stock", LeaseId: id})
		must(t, err)
		_, err = stolen.Recv()
		same(t, thief+" acquires", outcome(err), "NotFound LEASE_NOT_FOUND")
		_, err = leases.Check(within(t), &leasev1.CheckRequest{LeaseId: id})
		same(t, thief+" checks", outcome(err), "NotFound LEASE_NOT_FOUND")
		_, err = leases.Close(within(t), &leasev1.CloseRequest{LeaseId: id})
		same(t, thief+" closes", outcome(err), "NotFound LEASE_NOT_FOUND")
		_, err = locks.Release(within(t), &lockv1.ReleaseRequest{HoldId: granted.GetGranted().GetHoldId()})
		same(t, thief+" releases", outcome(err), "NotFound HOLD_NOT_FOUND")
	}
	_, err = leasev1.NewLeaseServiceClient(s.callers["socket:app"]).Check(within(t), &leasev1.CheckRequest{LeaseId: id})
	same(t, "its owner", outcome(err), "OK")
}

func TestANewPolicyIsForNewCallsAndABadOneForNone(t *testing.T) {
	t.Parallel()
	const locks = `rules: [{identities: ["socket:app"], methods: ["sidekeeper.lock.v1.LockService/*"], prefixes: [orders]}]`
	s := newPolicyScene(t, locks)
	client := lockv1.NewLockServiceClient(s.callers["socket:app"])
	get := func() string {
		_, err := client.Get(within(t), &lockv1.GetRequest{Name: "orders"})
		return outcome(err)
	}
	same(t, "by the first policy", get(), "OK")
	s.write("rules: []")
	awaitThat(t, "the new policy", func() bool { return get() == denied })
	complaints := func() int { return strings.Count(s.book.Text(), `identities[0] is \"app\": an identity is`) }
	s.write("rules: [{identities: [app]}]")
	awaitThat(t, "the complaint", func() bool { return complaints() == 1 })
	same(t, "by a bad policy", get(), denied)
	same(t, "metric", strings.Contains(expect.Scrape(s.metrics.Handler()), "sidekeeper_policy_refused 1"), true)
	s.write(locks)
	awaitThat(t, "the first policy again", func() bool { return get() == "OK" })
	same(t, "metric", strings.Contains(expect.Scrape(s.metrics.Handler()), "sidekeeper_policy_refused 0"), true)

	hold, err := client.Acquire(within(t), &lockv1.AcquireRequest{Name: "orders"})
	must(t, err)
	_, err = hold.Recv()
	must(t, err)
	s.write("rules: [{identities: [app]}]")
	awaitThat(t, "the complaint again", func() bool { return complaints() == 2 })
	_, err = lockv1.NewLockServiceClient(s.callers["operator"]).Revoke(within(t), &lockv1.RevokeRequest{Name: "orders", Reason: "through it all"})
	must(t, err)
	event, err := hold.Recv()
	must(t, err)
	same(t, "the stream through it all", event.GetRevocationRequested().GetReason(), "through it all")
}

// awaitThat asks until something is so.
func awaitThat(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for ctx := within(t); !isSo(); {
		if ctx.Err() != nil {
			t.Fatalf("%s has not come", what)
		}
	}
}

func TestAPolicyThatCannotBeUsedStopsTheSidecarFromStarting(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := opens(server.Options{Listen: []string{"127.0.0.1:0"}, Policy: folder + "/none"})
	if err == nil || !strings.HasPrefix(err.Error(), "--policy: open "+folder+"/none") {
		t.Errorf("got %v", err)
	}
}

func TestWaitsAndTicksAreCountedForTheClassThatThePolicyInForceNames(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, "rules: []\nclasses: [{name: checkout, prefixes: [shop]}]")
	s.metrics.WaitEnded("lock", "shop/orders", true, time.Second)
	s.metrics.WaitEnded("lock", "batch", false, time.Second)
	s.metrics.TickBegun("shop/report", time.Second)
	s.metrics.TicksMissed("shop/report", 3)
	s.metrics.AttemptEnded("shop/report", "succeeded", time.Second)
	s.metrics.AttemptEnded("shop/report", "lost", time.Second)
	for _, want := range []string{
		`sidekeeper_wait_seconds_count{class="checkout",granted="yes",kind="lock"} 1`,
		`sidekeeper_wait_seconds_count{class="default",granted="no",kind="lock"} 1`,
		`sidekeeper_schedule_late_seconds_count{class="checkout"} 1`,
		`sidekeeper_schedule_ticks_missed_total{class="checkout"} 3`,
		`sidekeeper_schedule_attempts_total{class="checkout",outcome="lost"} 1`,
		`sidekeeper_schedule_attempts_total{class="checkout",outcome="skipped"} 0`,
		`sidekeeper_schedule_attempt_seconds_count{class="checkout"} 1`,
	} {
		if text := expect.Scrape(s.metrics.Handler()); !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// A caller that may make no call of a method is refused before its request is decoded, whatever that is.
func TestTheRequestOfACallerWithoutARuleIsNotRead(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, `rules: [{identities: ["uid:4242"], methods: ["sidekeeper.lock.v1.LockService/*"]}]`)
	many := &lockv1.CheckRequest{HoldIds: make([]string, 10_000)} // more fields than are decoded
	_, err := lockv1.NewLockServiceClient(s.callers["socket:app"]).Check(within(t), many)
	same(t, "one call", outcome(err), denied)
	stream, err := lockv1.NewLockServiceClient(s.callers["socket:app"]).AcquireAll(within(t),
		&lockv1.AcquireAllRequest{Locks: make([]*lockv1.WantedLock, 10_000)})
	must(t, err)
	_, err = stream.Recv()
	same(t, "a stream", outcome(err), denied)
}
