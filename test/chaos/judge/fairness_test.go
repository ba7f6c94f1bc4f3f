package judge

import (
	"testing"
)

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
