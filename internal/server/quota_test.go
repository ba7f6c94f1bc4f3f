package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// newLimited starts a sidecar with two callers, of which a policy gives the first one little of something.
func newLimited(t *testing.T, limit string, change ...func(*Options)) (p *probe, one, other func() *grpc.ClientConn) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	methods := "['sidekeeper.lock.v1.LockService/*', 'sidekeeper.lock.v1.LockService/Break']"
	must(t, os.WriteFile(file, []byte("rules: [{identities: ['*'], methods: "+methods+"}]\n"+
		"limits: [{identities: ['socket:one'], "+limit+"}]\n"), 0o600))
	p, _, _ = newTwo(t, append(change, func(o *Options) { o.Policy, o.MaxConnections = file, 100 })...)
	p.acquire = func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
		if err := stream.Send(&lockv1.AcquireResponse{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	addresses := p.server.Addresses()
	return p, func() *grpc.ClientConn { return p.dial(addresses[0]) }, func() *grpc.ClientConn { return p.dial(addresses[1]) }
}

// acquires acquires locks until one is refused, a hundred at most, and returns how many there were and what the last one was told.
func acquires(t *testing.T, connection *grpc.ClientConn, name string) (granted int, err error) {
	t.Helper()
	for ; granted < 100; granted++ {
		stream, err := lockv1.NewLockServiceClient(connection).Acquire(within(t), &lockv1.AcquireRequest{Name: name})
		must(t, err)
		if _, err = stream.Recv(); err != nil {
			return granted, err
		}
	}
	return granted, nil
}

func TestACallerWithLittleIsRefusedAndAnotherIsNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, name, refused string }{
		{"streams: 3", "orders", "streams 3"},
		{"sessions_per_second: 3", "orders", "sessions_per_second 3"},
		{"writes_per_second: 4", "orders", "writes_per_second 4"},
		{"bytes_per_second: 1000", strings.Repeat("x", 100_000), "bytes_per_second 1000"},
	} {
		t.Run(c.limit, func(t *testing.T) {
			t.Parallel()
			p, one, other := newLimited(t, c.limit)
			_, err := acquires(t, one(), c.name)
			info, retry := detailsOf(err)
			same(t, "refused", outcome(err), "ResourceExhausted QUOTA_EXCEEDED")
			same(t, "limit", info["limit"]+" "+info["max"]+" of "+info["caller"], c.refused+" of socket:one")
			same(t, "the same time for those who read facts", info["retry_after_ms"] != "", retry > 0)
			same(t, "with a time to retry after", retry > 0, !strings.HasPrefix(c.limit, "streams"))
			granted, err := acquires(t, other(), c.name)
			same(t, "another caller", fmt.Sprint(granted, " ", outcome(err)), "100 OK")
			same(t, "a read of the caller", get(t, one()), "OK")
			limit, _, _ := strings.Cut(c.limit, ":")
			same(t, "metric", strings.Contains(scrape(p.metrics), `sidekeeper_quota_refusals_total{limit="`+limit+`"} 1`), true)
		})
	}
}

func TestACallThatWritesIsRefusedAsAStreamIs(t *testing.T) {
	t.Parallel()
	_, one, other := newLimited(t, "writes_per_second: 2")
	breaks := func(connection *grpc.ClientConn) (err error) {
		for i := 0; i < 20 && err == nil; i++ {
			_, err = lockv1.NewLockServiceClient(connection).Break(within(t), &lockv1.BreakRequest{})
		}
		return err
	}
	same(t, "the caller", outcome(breaks(one())), "ResourceExhausted QUOTA_EXCEEDED")
	same(t, "another one", outcome(breaks(other())), "OK")
}

func TestACallerWithFewConnectionsIsRefusedAndAnotherIsNot(t *testing.T) {
	t.Parallel()
	p, one, other := newLimited(t, "connections: 1")
	same(t, "the first", get(t, one()), "OK")
	same(t, "a second", get(t, one()), "Unavailable")
	for range 2 {
		same(t, "of another caller", get(t, other()), "OK")
	}
	same(t, "metric", strings.Contains(scrape(p.metrics), `sidekeeper_quota_refusals_total{limit="connections"} 0`), false)
}

func TestACallerWithFewIncompleteRequestsWaitsAndAnotherDoesNot(t *testing.T) {
	t.Parallel()
	p, one, other := newLimited(t, "incomplete_requests: 1", func(o *Options) { o.completeWithin = time.Hour })
	incomplete(t, one(), lockv1.LockService_Get_FullMethodName)
	until(t, 1, &quotaOf(p, "socket:one").intakeFor("", 1).calls)
	waits, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := lockv1.NewLockServiceClient(one()).Get(waits, &lockv1.GetRequest{})
	same(t, "the caller", outcome(err), "DeadlineExceeded")
	same(t, "another one", get(t, other()), "OK")
}

// detailsOf is what an error tells a program.
func detailsOf(err error) (facts map[string]string, retry time.Duration) {
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			facts = detail.GetMetadata()
		case *errdetails.RetryInfo:
			retry = detail.GetRetryDelay().AsDuration()
		}
	}
	return facts, retry
}

func TestAPaceAllowsTheWorkOfTwoSecondsAtOnceAndTellsWhenMore(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		limits := caller.NewLimits(policy.Limits{policy.SessionsPerSecond: 10, policy.WritesPerSecond: 100, policy.BytesPerSecond: 1 << 20})
		one, other := newCallerQuota(), newCallerQuota()
		spend := func(quota *callerQuota, of cost) string {
			err := answerWith(quota.spend(limits, "uid:1", of), discardTrailer)
			info, retry := detailsOf(err)
			return strings.TrimSpace(fmt.Sprintln(outcome(err), info["limit"], retry, info["retry_after_ms"]))
		}
		for range 20 {
			same(t, "a session", spend(one, cost{1, 1, 100}), "OK  0s")
		}
		same(t, "one more", spend(one, cost{1, 1, 100}), "ResourceExhausted QUOTA_EXCEEDED sessions_per_second 100ms 100")
		same(t, "has rested", one.hasRested(), false)
		same(t, "writes that the refused one left", spend(one, cost{0, 180, 0}), "OK  0s")
		same(t, "and no more", spend(one, cost{0, 1, 0}), "ResourceExhausted QUOTA_EXCEEDED writes_per_second 10ms 10")
		same(t, "of another caller", spend(other, cost{1, 200, 2 << 20}), "OK  0s")
		time.Sleep(100 * time.Millisecond)
		same(t, "later", spend(one, cost{1, 1, 100}), "OK  0s")
		time.Sleep(2 * time.Second)
		same(t, "has rested in the end", one.hasRested(), true)
		same(t, "more than is ever allowed at once", spend(one, cost{0, 5000, 0}), "OK  0s")
		same(t, "after that", spend(one, cost{0, 1, 0}), "ResourceExhausted QUOTA_EXCEEDED writes_per_second 10ms 10")
	})
}

// Whoever closes all its connections is not a new caller as long as anything counts against it.
func TestACallerIsNotForgottenWhileAnythingCountsAgainstIt(t *testing.T) {
	t.Parallel()
	for what, happens := range map[string]func(q *callerQuota) (undo func()){
		"calls that go on without it": func(q *callerQuota) func() {
			q.calls.Add(1)
			return func() { q.calls.Add(-1) }
		},
		"calls that were turned away": func(q *callerQuota) func() {
			q.turnedAway.count()
			return func() { time.Sleep(time.Second) }
		},
		"denials that were written": func(q *callerQuota) func() {
			q.mayBeDenied()
			return func() { time.Sleep(time.Second) }
		},
	} {
		bubble.Test(t, func(t *testing.T) {
			q := newCallerQuota()
			undo := happens(q)
			same(t, "has rested from "+what, q.hasRested(), false)
			undo()
			same(t, "has rested in the end from "+what, q.hasRested(), true)
		})
	}
}

func TestAPaceFollowsThePolicy(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		text := "rules: []\nlimits: [{identities: ['uid:1'], writes_per_second: 1}]"
		limits := caller.NewLimits(policy.Limits{})
		limits.Follow(func() *policy.Policy {
			parsed, err := policy.Parse("", []byte(text), nil, nil)
			must(t, err)
			return parsed
		})
		quota := newCallerQuota()
		must(t, quota.spend(limits, "uid:1", cost{0, 2, 0}))
		same(t, "at a slow pace", quota.spend(limits, "uid:1", cost{0, 1, 0}) == nil, false)
		text = strings.Replace(text, ": 1}", ": 100}", 1)
		_ = quota.spend(limits, "uid:1", cost{0, 1, 0})
		time.Sleep(time.Second)
		must(t, quota.spend(limits, "uid:1", cost{0, 100, 0}))
		text = "rules: []"
		must(t, quota.spend(limits, "uid:1", cost{0, 1000, 0}))
	})
}

func TestOnlyWhatWritesHasACost(t *testing.T) {
	t.Parallel()
	put := &configv1.Operation{Operation: &configv1.Operation_Put{Put: &configv1.PutRequest{Key: "a"}}}
	for _, c := range []struct {
		method  string
		request any
		want    string
	}{
		{leasev1.LeaseService_Open_FullMethodName, &leasev1.OpenRequest{}, "[1 0 0]"},
		{leasev1.LeaseService_Close_FullMethodName, &leasev1.CloseRequest{}, "[0 0 0]"},
		{lockv1.LockService_Acquire_FullMethodName, &lockv1.AcquireRequest{Name: "orders"}, "[1 1 8]"},
		{lockv1.LockService_Acquire_FullMethodName, &lockv1.AcquireRequest{Name: "orders", LeaseId: "x"}, "[0 1 11]"},
		{lockv1.LockService_Release_FullMethodName, &lockv1.ReleaseRequest{}, "[0 0 0]"},
		{lockv1.LockService_Get_FullMethodName, &lockv1.GetRequest{Name: "orders"}, "[0 0 0]"},
		{membershipv1.MembershipService_Join_FullMethodName, &membershipv1.JoinRequest{Group: "shop"}, "[1 1 6]"},
		{membershipv1.MembershipService_Update_FullMethodName, &membershipv1.UpdateRequest{Group: "shop"}, "[0 1 6]"},
		{sequencev1.SequenceService_Next_FullMethodName, &sequencev1.NextRequest{Name: "a"}, "[0 1 3]"},
		{
			sequencev1.SequenceService_Next_FullMethodName,
			&sequencev1.NextRequest{Name: "a", Ordering: sequencev1.Ordering_ORDERING_RELAXED}, "[0 0 0]",
		},
		{configv1.ConfigService_Put_FullMethodName, &configv1.PutRequest{Key: "a"}, "[0 1 3]"},
		{configv1.ConfigService_Commit_FullMethodName, &configv1.CommitRequest{Operations: []*configv1.Operation{put, put}}, "[0 2 14]"},
		{configv1.ConfigService_Watch_FullMethodName, &configv1.WatchRequest{Keys: []string{"a"}}, "[0 0 0]"},
	} {
		same(t, c.method, fmt.Sprint(costOf(c.method, c.request)), c.want)
	}
	for method := range writesOf {
		if _, known := methodPolicies[method]; !known {
			t.Errorf("%s is no method", method)
		}
	}
}

func TestAQuotaOfTheEnsembleCountsAsNoLimitOfACaller(t *testing.T) {
	t.Parallel()
	metrics := NewMetrics()
	for _, facts := range []map[string]string{{"limit": "bytes", "path": "/a"}, {"limit": "leases", "caller": "uid:1"}} {
		answer, err := status.New(codes.ResourceExhausted, "").WithDetails(&errdetails.ErrorInfo{Reason: quotaExceeded, Metadata: facts})
		must(t, err)
		metrics.refused(answer, quotaExceeded)
	}
	text := scrape(metrics)
	same(t, "of the ensemble", strings.Contains(text, `quota_refusals_total{limit="bytes"}`), false)
	same(t, "of a caller", strings.Contains(text, `quota_refusals_total{limit="leases"} 1`), true)
}

func TestWhereThereIsOneIdentityNoPaceHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Listen: []string{"unix:///s"}, MaxConnections: 100, MaxStreams: 10}, "75 40 64 750 75 1000 20000 8388608"},
		{Options{Listen: []string{"unix:///s"}, MaxStreams: 10, AllOperate: true}, "0 0 64 1000 100 0 0 0"},
		{Options{Listen: []string{"localhost:0"}, MaxConnections: 100, MaxStreams: 10}, "75 0 64 1000 100 0 0 0"},
	} {
		limits := NewLimits(c.options, 1000, 100)
		var got []string
		for limit := range policy.LimitNames() {
			got = append(got, fmt.Sprint(limits.Of("uid:1", policy.Limit(limit))))
		}
		same(t, fmt.Sprint(c.options.Listen), strings.Join(got, " "), c.want)
	}
}
