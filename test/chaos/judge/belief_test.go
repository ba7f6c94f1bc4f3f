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

// Who counts on what Check has answered does so also while it is frozen, and what it was told is not taken back by a hold's end
// that it has not read.
func TestWhoWasToldATimeIsSureForAsLongUnlessItKnowsBetter(t *testing.T) {
	tale := func(rest string) string {
		return `
			10 1/1 called L
			20 1/1 granted 1
			30 1/1 told 500 22
			60 1/1 told 900 55
			11 2/1 called L
			250 2/1 granted 2
			260 2/1 told 1500
			1400 2/1 releasing
			1401 2/1 ended OK
			15 c fault N1 server/1
			3000 c heal N1 server/1` + rest
	}
	judgeAll(t, Belief, []story{
		{name: "frozen", seen: tale(`
			2000 1/1 told 900
			2000 1/1 ended Aborted LEASE_CLOSED`), want: "sure of L for 640ms; how the first lost it: LEASE_CLOSED"},
		{name: "it has read the end", seen: tale(`
			240 1/1 told 240
			241 1/1 ended Aborted LEASE_CLOSED`)},
		{name: "it has read the end too late", seen: tale(`
			270 1/1 told 270
			271 1/1 ended Aborted LEASE_CLOSED`), want: "for 10ms"},
		{name: "given up", seen: tale(`
			240 1/1 releasing
			2000 1/1 ended OK`)},
		{name: "killed", seen: tale(`
			270 c killed client/1 250`)},
		{name: "killed while the other was sure", seen: tale(`
			300 c killed client/1 280`), want: "for 20ms; how the first lost it: nobody knows"},
		{name: "ended by somebody without patience", seen: tale(`
			240 c exempted L 1
			2000 1/1 ended Aborted LOCK_BROKEN`)},
		{name: "another hold was ended by somebody without patience", seen: tale(`
			240 c exempted L 3
			2000 1/1 ended Aborted LOCK_BROKEN`), want: "for 640ms"},
		{name: "asleep", seen: tale(`
			240 c slept sidecar/1
			250 1/1 ended Aborted LEASE_LOST`)},
		{name: "asleep when it was answered", seen: tale(`
			26 c slept sidecar/1 25
			250 1/1 ended Aborted LEASE_LOST`)},
		{name: "awake just when it asked", seen: tale(`
			24 c slept sidecar/1 21
			250 1/1 ended Aborted LEASE_LOST`)},
		{name: "asleep before", seen: tale(`
			21 c slept sidecar/1
			2000 1/1 ended Aborted LEASE_CLOSED`), want: "for 640ms"},
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
