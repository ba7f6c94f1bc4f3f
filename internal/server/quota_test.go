// It looks inside: a pace is counted in virtual time, and what a call costs shows in no answer.

package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
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
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

func TestAPaceAllowsTheWorkOfTwoSecondsAtOnceAndTellsWhenMore(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		limits := caller.NewLimits(policy.Limits{policy.SessionsPerSecond: 10, policy.WritesPerSecond: 100, policy.BytesPerSecond: 1 << 20})
		one, other := newCallerQuota(), newCallerQuota()
		spend := func(quota *callerQuota, of cost) string {
			err := answerWith(quota.spend(limits, "uid:1", of), discardTrailer)
			info, retry := expect.Details(err)
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
	text := expect.Scrape(metrics.Handler())
	same(t, "of the ensemble", strings.Contains(text, `quota_refusals_total{limit="bytes"}`), false)
	same(t, "of a caller", strings.Contains(text, `quota_refusals_total{limit="leases"} 1`), true)
}
