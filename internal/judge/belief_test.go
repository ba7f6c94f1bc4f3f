package judge

import (
	"slices"
	"testing"
	"time"
)

func TestTwoThatAreSureOfALockAtOnceAreTold(t *testing.T) {
	pair := func(firstMode, secondMode, first, second string) string {
		return `
			10 1/1 called L ` + firstMode + `
			20 1/1 granted 1
			99 1/1 believed ` + first + `
			500 1/1 ended Aborted LEASE_LOST
			11 2/1 called L ` + secondMode + `
			30 2/1 granted 2
			199 2/1 believed ` + second + `
			500 2/1 ended user
			15 c fault N1 server/1
			16 c heal N1 server/1`
	}
	judgeAll(t, Belief, []story{
		{name: "one after the other", seen: pair("exclusive", "exclusive", "21 90", "91 190")},
		{name: "one in the instant in which the other is last sure", seen: pair("exclusive", "exclusive", "21 90", "90 190")},
		{name: "two at once", seen: pair("exclusive", "exclusive", "21 90", "89 190"), want: "sure of L for 1ms"},
		{name: "one while the other is sure", seen: pair("exclusive", "exclusive", "21 90", "30 40"), want: "for 10ms"},
		{name: "two readers", seen: pair("read", "read", "21 90", "22 190")},
		{name: "a reader and a writer", seen: pair("read", "write", "21 90", "22 190"), want: "as write"},
		{name: "a writer and a reader", seen: pair("write", "read", "21 90", "22 190"), want: "as read"},
		{name: "two writers", seen: pair("write", "write", "21 90", "22 190"), want: "for 68ms"},
		{name: "one that looked once, so that it was sure for no time that is known", seen: pair("exclusive", "exclusive", "80 79", "70 190")},
		{
			name: "a third within the first's time, behind a second that was short",
			seen: pair("write", "read", "21 300", "400 410") + `
				12 3/1 called L read
				30 3/1 granted 3
				199 3/1 believed 100 110
				500 3/1 ended user`,
			want: "for 10ms",
		},
		{
			name: "a writer while the first of two readers is sure",
			seen: pair("read", "read", "21 300", "25 30") + `
				12 3/1 called L write
				30 3/1 granted 3
				199 3/1 believed 100 110
				500 3/1 ended user`,
			want: "client 1/1 as read (token 1) and client 3/1 as write (token 3) were both sure of L for 10ms",
		},
		{
			name: "the same caller in two locks",
			seen: pair("exclusive", "exclusive", "21 90", "91 190") + `
				12 1/2 called M
				30 1/2 granted 7
				99 1/2 believed 21 90
				500 1/2 ended user`,
		},
		{
			name: "one that was frozen while it held, and is killed",
			seen: `
				10 1/1 called L
				20 1/1 granted 1
				50 1/1 believed 21 49
				51 c fault N5 client/1
				3000 c killed client/1
				11 2/1 called L
				2500 2/1 granted 2
				2600 2/1 believed 2501 2599
				2601 2/1 ended user`,
		},
	})
}

func TestForcedHandoversAreCountedWithTheirMargins(t *testing.T) {
	verdict := Judge(story{seen: `
		10 1/1 called L
		20 1/1 granted 1
		99 1/1 believed 21 90
		100 1/1 ended Aborted LEASE_LOST
		11 2/1 called L
		130 2/1 granted 2
		199 2/1 believed 140 190
		200 2/1 releasing
		201 2/1 ended OK
		12 3/1 called L
		210 3/1 granted 3
		215 3/1 believed 211 214
		215 3/1 ended Aborted LEASE_LOST
		220 4/1 called L
		300 4/1 granted 4
		350 4/1 ended user`}.round())
	if verdict.Grants != 4 || verdict.ForcedHandovers != 2 {
		t.Errorf("%d grants, %d forced hand-overs", verdict.Grants, verdict.ForcedHandovers)
	}
	if !slices.Equal(verdict.Margins, []time.Duration{50 * time.Millisecond}) {
		t.Errorf("margins %v", verdict.Margins)
	}
}
