package budget

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

func TestAPaceAllowsTheWorkOfTwoSecondsAtOnceAndTellsWhenMore(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		limits := caller.NewLimits(policy.Limits{policy.SessionsPerSecond: 10, policy.WritesPerSecond: 100, policy.BytesPerSecond: 1 << 20})
		one, other := newCallerQuota(), newCallerQuota()
		spend := func(quota *callerQuota, of Cost) string {
			err := quota.spend(limits, "uid:1", of)
			if err == nil {
				return told(nil)
			}
			answer, _ := service.StatusOf(err)
			info, retry := expect.Details(answer.Err())
			return fmt.Sprint(told(err), " ", info["limit"], " ", retry, " ", info["retry_after_ms"])
		}
		for range 20 {
			same(t, "a session", spend(one, Cost{1, 1, 100}), "OK")
		}
		same(t, "one more", spend(one, Cost{1, 1, 100}), "ResourceExhausted QUOTA_EXCEEDED sessions_per_second 100ms 100")
		same(t, "has rested", one.hasRested(), false)
		same(t, "writes that the refused one left", spend(one, Cost{0, 180, 0}), "OK")
		same(t, "and no more", spend(one, Cost{0, 1, 0}), "ResourceExhausted QUOTA_EXCEEDED writes_per_second 10ms 10")
		same(t, "of another caller", spend(other, Cost{1, 200, 2 << 20}), "OK")
		time.Sleep(100 * time.Millisecond)
		same(t, "later", spend(one, Cost{1, 1, 100}), "OK")
		time.Sleep(2 * time.Second)
		same(t, "has rested in the end", one.hasRested(), true)
		same(t, "more than is ever allowed at once", spend(one, Cost{0, 5000, 0}), "OK")
		same(t, "after that", spend(one, Cost{0, 1, 0}), "ResourceExhausted QUOTA_EXCEEDED writes_per_second 10ms 10")
	})
}

// A caller that closes all its connections is not a new one as long as anything counts against it.
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
			(&Slot{quota: q}).MayBeDenied()
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
		must(t, quota.spend(limits, "uid:1", Cost{0, 2, 0}))
		same(t, "at a slow pace", quota.spend(limits, "uid:1", Cost{0, 1, 0}) == nil, false)
		text = strings.Replace(text, ": 1}", ": 100}", 1)
		_ = quota.spend(limits, "uid:1", Cost{0, 1, 0})
		time.Sleep(time.Second)
		must(t, quota.spend(limits, "uid:1", Cost{0, 100, 0}))
		text = "rules: []"
		must(t, quota.spend(limits, "uid:1", Cost{0, 1000, 0}))
	})
}
