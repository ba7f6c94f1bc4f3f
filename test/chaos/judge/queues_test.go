package judge

import (
	"strings"
	"testing"
)

// An item that client 1 puts, client 2 takes, and gives back, and client 3 takes and removes.
const (
	worked = `
		10 1/1 putting a
		20 1/1 placed ok
		12 2/1 taking
		40 2/1 delivered a 14
		41 2/1 told 80
		50 2/1 releasing
		60 2/1 ended Canceled
		30 3/1 taking
		80 3/1 delivered a 20
		81 3/1 told 180
		90 3/1 finishing
		100 3/1 finished ok
		105 3/1 ended OK`
	workedLog = `
		11 11 s2 waits 2/1
		12 15 s1 item 1 a
		13 20 s2 takes 1 2/1
		14 30 s2 delivered 2/1
		15 41 s2 left 2/1
		16 42 s3 waits 3/1
		17 55 s2 over 2/1
		18 56 s2 gave 1
		19 60 s3 takes 1 3/1
		20 70 s3 delivered 3/1
		21 75 s3 left 3/1
		22 95 s9 removed 1
		23 96 s3 over 3/1
		24 97 s3 gave 1`
)

// but is a history in which some words stand for others.
func but(text string, replaced ...string) string {
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(text, replaced[i]) {
			panic(replaced[i])
		}
	}
	return strings.NewReplacer(replaced...).Replace(text)
}

func TestItemsAreDeliveredToOneCallerAtATimeUntilOneIsDone(t *testing.T) {
	judgeAll(t, Queues, []story{
		{name: "as promised", seen: worked, logged: workedLog},
		{name: "by the histories alone", seen: worked},
		{
			name: "two have it",
			seen: but(worked, "50 2/1 releasing", "87 2/1 releasing", "60 2/1 ended", "99 2/1 ended", "told 80", "told 90"),
			want: "were both sure of a",
		},
		{
			name: "again when it is removed",
			seen: worked + "\n110 4/1 taking\n120 4/1 delivered a 30\n130 4/1 ended user",
			want: "client 4/1 was delivered a, which client 3/1 had been told to be removed",
		},
		{
			name: "with a smaller token",
			seen: but(worked, "30 3/1 taking", "45 3/1 taking", "delivered a 20", "delivered a 13"),
			want: "with token 13, after client 2/1 with token 14",
		},
		{
			name:   "with a token of nobody's",
			seen:   but(worked, "delivered a 14", "delivered a 15"),
			logged: workedLog,
			want:   "not that of its place",
		},
		{
			name:   "with the place of another",
			seen:   worked,
			logged: but(workedLog, "s2 delivered 2/1", "s2 delivered 5/1", "s2 over 2/1", "s2 over 5/1"),
			want:   "not that of its place",
		},
		{
			name:   "before its place was there",
			seen:   but(worked, "40 2/1 delivered", "20 2/1 delivered"),
			logged: workedLog,
			want:   "client 2/1 was delivered a 10ms before its place was there",
		},
		{
			name:   "and counted on for longer",
			seen:   but(worked, "50 2/1 releasing", "59 2/1 releasing"),
			logged: workedLog,
			want:   "client 2/1 was sure of a for 3ms after its place was gone",
		},
		{
			name:   "that nobody had put",
			seen:   but(worked, "delivered a 14", "delivered b 14"),
			logged: workedLog,
			want:   "client 2/1 was delivered b, which was not in the queue",
		},
		{
			name:   "without having taken it",
			seen:   worked,
			logged: but(workedLog, "13 20 s2 takes 1 2/1", "13 20 s4 takes 1 2/1"),
			want:   "client 2/1 was delivered a, which it had not taken",
		},
		{
			name:   "and given back before its end",
			seen:   worked,
			logged: but(workedLog, "17 55 s2 over 2/1", "17 55 s2 gave 1", "18 56 s2 gave 1", "18 56 s2 over 2/1"),
			want:   "a was taken from client 2/1 at zxid 0x11 while it was delivered",
		},
	})
}

func TestItemsAreNeitherLostNorDoubled(t *testing.T) {
	judgeAll(t, Queues, []story{
		{
			name:   "it is not there",
			seen:   "10 1/1 putting a\n20 1/1 placed ok",
			logged: "5 11 s1 make /x",
			want:   "its item is in Q, and it was not",
		},
		{
			name:   "it comes later",
			seen:   "10 1/1 putting a\n20 1/1 placed ok",
			logged: "5 30 s1 item 1 a",
			want:   "its item is in Q, and it was not",
		},
		{name: "it may have been put", seen: "10 1/1 putting a\n20 1/1 placed unknown", logged: "5 30 s1 item 1 a"},
		{
			name:   "it was put all the same",
			seen:   "10 1/1 putting a\n20 1/1 placed refused",
			logged: "5 11 s1 item 1 a",
			want:   "its item is not in Q, and it was",
		},
		{
			name:   "twice",
			seen:   "10 1/1 putting a\n20 1/1 placed ok",
			logged: "5 11 s1 item 1 a\n6 12 s1 item 2 a",
			want:   "a was put into Q 2 times",
		},
		{
			name:   "removed by nobody",
			seen:   "10 1/1 putting a\n20 1/1 placed ok",
			logged: "5 11 s1 item 1 a\n6 12 s1 removed 1",
			want:   "a was removed at zxid 0x6, though nobody who had it was done with it",
		},
		{
			name:   "removed before anybody is done",
			seen:   but(worked, "90 3/1 finishing", "97 3/1 finishing"),
			logged: workedLog,
			want:   "a was removed at zxid 0x16, though nobody",
		},
		{
			name:   "removed by one that had it no more",
			seen:   worked,
			logged: but(workedLog, "22 95 s9 removed 1", "22 95 s3 over 3/1", "23 96 s3 over 3/1", "23 96 s9 removed 1"),
			want:   "a was removed at zxid 0x17, though nobody",
		},
		{
			name:   "still there",
			seen:   worked,
			logged: but(workedLog, "22 95 s9 removed 1", "22 95 s9 make /x"),
			want:   "client 3/1 was told that a is removed, and it was not",
		},
	})
}

func TestItemsAndCallersHaveTheirTurn(t *testing.T) {
	judgeAll(t, Queues, []story{
		{
			name: "an item is passed over",
			seen: "10 2/1 taking\n200 2/1 ended user",
			logged: `
			1 11 s1 item 1 a
			2 12 s1 item 2 b
			3 13 s2 waits 2/1
			4 14 s2 takes 2 2/1
			5 15 s2 close`,
			want: "b was taken at zxid 0x4 before a",
		},
		{
			name: "an item that had been given back",
			seen: "10 2/1 taking\n200 2/1 ended user\n10 3/1 taking\n200 3/1 ended user",
			logged: `
			1 11 s1 item 1 a
			2 12 s1 item 2 b
			3 13 s2 waits 2/1
			4 14 s2 takes 1 2/1
			5 15 s2 close
			6 16 s3 waits 3/1
			7 17 s3 takes 2 3/1
			8 18 s3 close`,
		},
		{
			name: "a caller is passed over",
			seen: "10 2/1 taking\n200 2/1 ended user\n10 3/1 taking\n200 3/1 ended user",
			logged: `
			1 11 s1 item 1 a
			2 12 s2 waits 2/1
			3 13 s3 waits 3/1
			4 14 s3 takes 1 3/1
			5 15 s3 close
			6 16 s2 close`,
			want: "a was taken at zxid 0x4 by a session of which nobody was the first",
		},
		{
			name: "a caller waits in vain",
			seen: "10 2/1 taking\n3000 2/1 ended user",
			logged: `
			1 11 s1 item 1 a
			2 12 s2 waits 2/1
			3 2999 s2 close`,
			want: "client 2/1 waited for 2.986s beside a, which nobody had",
		},
		{
			name: "a caller waits during a fault",
			seen: "10 2/1 taking\n3000 2/1 ended user\n20 0 fault N server/1\n2500 0 heal N server/1",
			logged: `
			1 11 s1 item 1 a
			2 12 s2 waits 2/1
			3 2999 s2 close`,
		},
		{
			name:   "something is left",
			seen:   "10 2/1 taking\n20 2/1 ended user",
			logged: "1 11 s2 takes 1 2/1",
			want:   "/queues/Q.taken/queue-0000000001 is still there",
		},
	})
}

func TestDeliveriesAndItemsAreCounted(t *testing.T) {
	if v := Judge(story{seen: worked, logged: workedLog}.round()); v.Deliveries != 2 || v.Items != 1 {
		t.Errorf("%d deliveries, %d items", v.Deliveries, v.Items)
	}
}

func TestWhatBecomesOfADeliveryIsTold(t *testing.T) {
	judgeAll(t, Losses, []story{
		{name: "lost", seen: but(worked, "50 2/1 releasing\n", "\n", "ended Canceled", "ended Aborted LEASE_LOST")},
		{
			name: "no reason",
			seen: but(worked, "50 2/1 releasing\n", "\n", "ended Canceled", "ended Aborted"),
			want: "which is no reason to lose it",
		},
		{
			name: "OK for nothing",
			seen: but(worked, "50 2/1 releasing\n", "\n", "ended Canceled", "ended OK"),
			want: "ended with OK, though nobody",
		},
	})
}
