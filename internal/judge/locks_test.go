package judge

import (
	"slices"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/history"
)

func TestGrantsThatTheEnsembleKnowsNothingOfAreTold(t *testing.T) {
	judgeAll(t, Truth, []story{
		{
			name: "one after the other",
			seen: `
				10 1/1 called L
				20 1/1 granted 5
				40 1/1 believed 21 39
				40 1/1 releasing
				42 1/1 ended OK
				12 2/1 called L
				13 2/1 queued
				50 2/1 granted 6
				60 2/1 believed 51 59
				60 2/1 releasing
				61 2/1 ended OK`,
			logged: `
				5 11 s1 place 1/1 L
				6 12 s2 place 2/1 L
				7 41 s1 gone 1/1 L
				8 61 s2 gone 2/1 L`,
		},
		{
			name: "a token that nobody took a place with",
			seen: `
				10 1/1 called L
				20 1/1 granted 4
				30 1/1 ended user`,
			logged: `
				5 11 s1 place 1/1 L
				6 29 s1 gone 1/1 L`,
			want: "nobody took a place",
		},
		{
			name: "a turn that never came, since another waits before it for ever",
			seen: `
				12 2/1 called L
				20 2/1 granted 6
				30 2/1 ended user`,
			logged: `
				5 11 s1 place 1/1 L
				6 12 s2 place 2/1 L
				7 29 s2 gone 2/1 L`,
			want: "whose turn never came",
		},
		{
			name: "a grant before the holder has gone",
			seen: `
				12 2/1 called L
				20 2/1 granted 6
				50 2/1 ended user`,
			logged: `
				5 11 s1 place 1/1 L
				6 12 s2 place 2/1 L
				7 40 s1 gone 1/1 L
				8 50 s2 gone 2/1 L`,
			want: "at least 20ms before its turn came at zxid 0x7",
		},
		{
			name: "a grant in the very millisecond in which the holder went",
			seen: `
				12 2/1 called L
				40.9 2/1 granted 6
				50 2/1 ended user`,
			logged: `
				5 11 s1 place 1/1 L
				6 12 s2 place 2/1 L
				7 40 s1 gone 1/1 L
				8 50 s2 gone 2/1 L`,
		},
		{
			name: "a place without a session",
			seen: `
				10 1/1 called L
				20 1/1 granted 5
				30 1/1 ended user`,
			logged: `
				5 11 s1 make /locks/L/_c_a-lock-0000000001 {"owner":"1/1"}
				6 30 s1 delete /locks/L/_c_a-lock-0000000001`,
			want: "no session owns",
		},
		{
			name: "the place of another",
			seen: `
				10 1/1 called L
				20 1/1 granted 5
				30 1/1 ended user`,
			logged: `
				5 11 s1 place 2/1 L
				6 30 s1 gone 2/1 L`,
			want: "with the place of client 2/1",
		},
		{
			name: "a place for reading only",
			seen: `
				10 1/1 called L write
				20 1/1 granted 5
				30 1/1 ended user`,
			logged: `
				5 11 s1 place 1/1 L read
				6 30 s1 gone 1/1 L read`,
			want: "as write with a place for read",
		},
		{
			name: "two grants with one token",
			seen: `
				10 1/1 called L
				20 1/1 granted 5
				30 1/1 ended user
				10 1/2 called L
				20 1/2 granted 5
				30 1/2 ended user`,
			logged: `
				5 11 s1 create /locks/L/_c_a-lock-0000000001
				6 30 s1 delete /locks/L/_c_a-lock-0000000001`,
			want: "with the same token 5",
		},
		{
			name: "a holder that is sure when its session has expired",
			seen: `
				10 1/1 called L
				20 1/1 granted 5
				2050 1/1 believed 21 2050
				2051 1/1 ended Aborted LEASE_LOST`,
			logged: `
				5 11 s1 place 1/1 L
				6 2030 s1 expire`,
			want: "at least 19ms after its session had expired",
		},
		{
			name: "a holder that is sure until its session expires, and hears of it later",
			seen: `
				10 1/1 called L
				20 1/1 granted 5
				2030 1/1 believed 21 2030
				2051 1/1 ended Aborted LEASE_LOST`,
			logged: `
				5 11 s1 place 1/1 L
				6 2030 s1 expire`,
		},
		{
			name: "a grant that arrives when its session has expired already, which the caller does not believe",
			seen: `
				10 1/1 called L
				2040 1/1 granted 5
				2051 1/1 ended Aborted LEASE_LOST
				10 c fault N4 server/1
				2000 c heal N4 server/1`,
			logged: `
				5 11 s1 place 1/1 L
				6 2030 s1 expire`,
		},
		{
			name: "readers together, then a writer, then a reader",
			seen: `
				10 1/1 called L read
				20 1/1 granted 1
				40 1/1 believed 21 39
				40 1/1 ended user
				10 2/1 called L read
				20 2/1 granted 2
				45 2/1 believed 21 44
				45 2/1 ended user
				15 3/1 called L write
				50 3/1 granted 3
				60 3/1 believed 51 59
				60 3/1 ended user
				16 4/1 called L read
				70 4/1 granted 4
				80 4/1 ended user`,
			logged: `
				1 11 s1 place 1/1 L read
				2 12 s2 place 2/1 L read
				3 16 s3 place 3/1 L write
				4 17 s4 place 4/1 L read
				5 40 s1 gone 1/1 L read
				6 46 s2 gone 2/1 L read
				7 60 s3 gone 3/1 L write
				8 80 s4 gone 4/1 L read`,
		},
		{
			name: "a writer among readers",
			seen: `
				15 3/1 called L write
				20 3/1 granted 3
				60 3/1 ended user`,
			logged: `
				1 11 s1 place 1/1 L read
				3 16 s3 place 3/1 L write
				5 40 s1 gone 1/1 L read
				7 60 s3 gone 3/1 L write`,
			want: "before its turn came",
		},
		{
			name: "a reader behind a writer",
			seen: `
				15 3/1 called L read
				20 3/1 granted 3
				60 3/1 ended user`,
			logged: `
				1 11 s1 place 1/1 L write
				3 16 s3 place 3/1 L read
				5 40 s1 gone 1/1 L write
				7 60 s3 gone 3/1 L read`,
			want: "before its turn came",
		},
		{
			name: "strangers in the directory",
			seen: `
				10 1/1 called L
				20 1/1 granted 5
				30 1/1 ended user`,
			logged: `
				4 9 s9 create /locks/L/notes
				5 11 s1 place 1/1 L
				6 30 s1 gone 1/1 L`,
		},
	})
}

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

func TestTokensThatDoNotGrowAndUnfairGrantsAreTold(t *testing.T) {
	held := func(who, called, queued, granted, token, ended string) string {
		text := called + " " + who + " called L\n" + granted + " " + who + " granted " + token + "\n" + ended + " " + who + " ended user\n"
		if queued != "" {
			text += queued + " " + who + " queued\n"
		}
		return text
	}
	judgeAll(t, Effects, []story{
		{name: "tokens that grow", seen: held("1/1", "10", "", "20", "1", "30") + held("2/1", "25", "", "40", "2", "50")},
		{
			name: "a smaller token for one that asked later",
			seen: held("1/1", "10", "", "20", "7", "30") + held("2/1", "25", "", "40", "2", "50"), want: "with token 2, though client 1/1 had 7",
		},
		{
			name: "the same token again",
			seen: held("1/1", "10", "", "20", "7", "30") + held("2/1", "25", "", "40", "7", "50"), want: "with token 7",
		},
		{
			name: "a smaller token that is known later than it was given, while both asked",
			seen: held("1/1", "10", "", "20", "7", "30") + held("2/1", "15", "", "40", "2", "50"),
		},
		{
			name: "one that is told in the instant in which the next asks",
			seen: held("1/1", "10", "", "20", "7", "30") + held("2/1", "20", "", "40", "2", "50"),
		},
		{
			name: "a token that begins anew, after many",
			seen: held("1/1", "10", "", "20", "7", "30") + held("1/2", "31", "", "40", "8", "50") + held("1/3", "51", "", "60", "1", "70"),
			want: "with token 1, though client 1/2 had 8",
		},
	})
	judgeAll(t, Fairness, []story{
		{name: "in the order in which they came", seen: held("1/1", "10", "12", "20", "1", "30") + held("2/1", "13", "14", "40", "2", "50")},
		{
			name: "one that is known to wait is overtaken",
			seen: held("1/1", "10", "12", "60", "2", "70") + held("2/1", "13", "", "40", "1", "50"), want: "client 1/1 waited for L already",
		},
		{
			name: "one that is overtaken by the third behind it",
			seen: held("1/1", "10", "12", "60", "5", "70") + held("2/1", "11", "14", "40", "1", "50") + held("3/1", "13", "", "56", "4", "57"),
			want: "when client 3/1 asked",
		},
		{
			name: "one that loses its place while it waits and gets it back at the end",
			seen: held("1/1", "10", "12", "100", "9", "110") + held("2/1", "90", "", "95", "8", "96"), want: "granted it later",
		},
		{
			name: "two that ask at once",
			seen: held("1/1", "10", "12", "60", "2", "70") + held("2/1", "12", "13", "40", "1", "50"),
		},
		{
			name: "one that gives up waiting",
			seen: `
				10 1/1 called L
				11 1/1 queued
				30 1/1 ended user` + "\n" + held("2/1", "12", "13", "40", "2", "50"),
		},
		{
			name: "one whose session expires while it waits",
			seen: `
				10 1/1 called L
				11 1/1 queued
				30 1/1 ended Aborted LEASE_LOST` + "\n" + held("2/1", "12", "13", "40", "2", "50"),
		},
		{
			name: "a herd",
			seen: `
				1 c fired 100
				50000 c fired 104` + "\n" + held("1/1", "10", "", "20", "1", "30"),
			logged: `
				1 11 s1 place 1/1 L
				2 29 s1 gone 1/1 L`,
			want: "4 watches were fired by 1 contenders",
		},
		{
			name: "a holder's own watch, and the one behind it",
			seen: `
				1 c fired 100
				50000 c fired 102` + "\n" + held("1/1", "10", "", "20", "1", "30"),
			logged: `
				1 11 s1 place 1/1 L
				2 29 s1 gone 1/1 L`,
		},
	})
}

func TestEffectsThatALockShouldHavePreventedAreTold(t *testing.T) {
	holder := func(acts string) string {
		return `
			10 1/1 called L
			20 1/1 granted 5
			90 1/1 ended user` + acts
	}
	judgeAll(t, Effects, []story{
		{
			name: "one write after the other",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				32 1/1 acted fenced 5 1 ok
				40 1/1 acting fenced 5 2
				41 s accepted fenced L 5 2
				42 1/1 acted fenced 5 2 ok`),
		},
		{
			name: "a write whose outcome nobody knows, which was done, and one that was not",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				32 1/1 acted fenced 5 1 unknown
				40 1/1 acting fenced 5 2
				42 1/1 acted fenced 5 2 unknown`),
		},
		{
			name: "a caller that is killed while it writes",
			seen: `
				10 1/1 called L
				20 1/1 granted 5
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				31 c killed client/1`,
		},
		{
			name: "a late write that is refused",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s refused fenced L 5 1
				32 1/1 acted fenced 5 1 refused`),
		},
		{
			name: "a smaller token after a larger one",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				30 1/1 acting fenced 4 2
				33 s accepted fenced L 4 2`), want: "accepted token 4 after 5",
		},
		{
			name: "an update that is lost",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				32 1/1 acting fenced 5 1
				33 s accepted fenced L 5 1`), want: "was lost: token 5 wrote 1 over the 1",
		},
		{
			name: "a success that the store knows nothing of",
			seen: holder(`
				30 1/1 acting fenced 5 1
				32 1/1 acted fenced 5 1 ok`), want: "and told it 1 times",
		},
		{
			name: "a write that was done though it was refused",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				32 1/1 acted fenced 5 1 refused`), want: "told that it was refused",
		},
		{
			name: "a write that nobody asked for",
			seen: holder(`
				31 s accepted fenced L 5 1`), want: "asked to 0 times",
		},
		{
			name: "two locks with a counter each",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				10 1/2 called M
				20 1/2 granted 3
				30 1/2 acting fenced 3 1
				33 s accepted fenced M 3 1
				40 1/2 ended user`),
		},
	})
}

func TestANaiveStoreWithoutDamageMakesARoundOfFreezesInvalid(t *testing.T) {
	damages := func(s *history.Settings) { s.Damages = true }
	seen := `
		10 1/1 called L
		20 1/1 granted 5
		30 1/1 acting naive 5 1
		31 s accepted naive L 5 1
		32 1/1 acted naive 5 1 ok
		40 1/1 ended user`
	if verdict := Judge(story{seen: seen, adjust: damages}.round()); verdict.Invalid == "" || len(verdict.Violations) > 0 {
		t.Errorf("%+v", verdict)
	}
	damaged := seen + `
		34 1/1 acting naive 5 1
		35 s accepted naive L 5 1`
	if verdict := Judge(story{seen: damaged, adjust: damages}.round()); verdict.Invalid != "" || len(verdict.Violations) > 0 {
		t.Errorf("%+v", verdict)
	}
	if verdict := Judge(story{seen: seen}.round()); verdict.Invalid != "" {
		t.Errorf("%+v", verdict)
	}
}
