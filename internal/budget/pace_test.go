package budget

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

func accountOf(limits *caller.Limits) *account {
	return budgetOf(0, zap.NewNop(), func(o *Options) { o.Limits = limits }).newAccount("uid:1")
}

func TestAPaceAllowsTheWorkOfTwoSecondsAtOnceAndTellsWhenMore(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		limits := caller.NewLimits(policy.Limits{policy.SessionsPerSecond: 10, policy.WritesPerSecond: 100, policy.BytesPerSecond: 1 << 20})
		one, other := accountOf(limits), accountOf(limits)
		spend := func(by *account, of Cost) string {
			err := by.spend(of)
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
	for what, happens := range map[string]func(a *account) (undo func()){
		"calls that go on without it": func(a *account) func() {
			a.calls.Add(1)
			return func() { a.calls.Add(-1) }
		},
		"calls that were turned away": func(a *account) func() {
			a.turnedAway.count()
			return func() { time.Sleep(time.Second) }
		},
		"denials that were written": func(a *account) func() {
			(&Slot{account: a}).MayBeDenied()
			return func() { time.Sleep(time.Second) }
		},
	} {
		bubble.Test(t, func(t *testing.T) {
			a := accountOf(caller.NewLimits(policy.Limits{}))
			undo := happens(a)
			same(t, "has rested from "+what, a.hasRested(), false)
			undo()
			same(t, "has rested in the end from "+what, a.hasRested(), true)
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
		of := accountOf(limits)
		must(t, of.spend(Cost{0, 2, 0}))
		same(t, "at a slow pace", of.spend(Cost{0, 1, 0}) == nil, false)
		text = strings.Replace(text, ": 1}", ": 100}", 1)
		_ = of.spend(Cost{0, 1, 0})
		time.Sleep(time.Second)
		must(t, of.spend(Cost{0, 100, 0}))
		text = "rules: []"
		must(t, of.spend(Cost{0, 1000, 0}))
	})
}
