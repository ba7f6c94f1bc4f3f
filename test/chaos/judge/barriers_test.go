package judge

import (
	"testing"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

func TestNobodyPassesABarrierThatStands(t *testing.T) {
	const (
		seen = `
			10 1/1 setting
			20 1/1 ended OK
			30 2/1 awaiting
			62 2/1 ended OK
			50 1/2 removing
			65 1/2 ended OK`
		logged = `
			5 15 s1 make /barriers/B x
			6 60 s1 delete /barriers/B`
	)
	judgeAll(t, Barriers, []story{
		{name: "as promised", seen: seen, logged: logged},
		{name: "it stands", seen: but(seen, "62 2/1 ended", "40 2/1 ended"), logged: logged, want: "client 2/1 passed B or removed it, which stood"},
		{
			name: "it is set anew at once", seen: seen + "\n59 3/1 setting\n63 3/1 ended OK", logged: logged + "\n7 61 s1 make /barriers/B x",
		},
		{
			name: "no caller sets it", seen: seen, logged: logged + "\n7 70 s1 make /barriers/B x",
			want: "/barriers/B came at zxid 0x7, though no caller",
		},
		{
			name: "a lost setting comes late", seen: seen + "\n59 3/1 setting\n63 3/1 ended Unavailable",
			logged: logged + "\n7 70 s1 make /barriers/B x",
		},
		{name: "it is not removed", seen: seen, logged: "5 15 s1 make /barriers/B x", want: "client 1/2 passed B or removed it, which stood"},
		{name: "it is not set", seen: seen, logged: "5 5 s1 make /x", want: "client 1/1 was told that B is set, and it was not"},
		{
			name: "it is set too late", seen: seen, logged: "5 25 s1 make /barriers/B x\n6 60 s1 delete /barriers/B",
			want: "client 1/1 was told that B is set",
		},
		{
			name: "nobody removes it", seen: but(seen, "50 1/2 removing", "61 1/2 setting"), logged: logged,
			want: "/barriers/B went at zxid 0x6, though no caller",
		},
		{name: "a lost removal comes late", seen: but(seen, "65 1/2 ended OK", "55 1/2 ended Unavailable"), logged: logged},
		{
			name: "nobody hears of it", seen: but(seen, "62 2/1 ended OK", "1200 2/1 ended OK"), logged: logged,
			want: "client 2/1 waited at B for 1.139s",
		},
		{
			name: "nobody hears of it in a fault", logged: logged,
			seen: but(seen, "62 2/1 ended OK", "1200 2/1 ended OK") + "\n70 0 fault N server/1\n500 0 heal N server/1",
		},
	})
}

// Two who are inside a double barrier together, and a third who comes meanwhile and does not wait for another.
const (
	insideTogether = `
		10 1/1 entering 2
		40 1/1 entered 7
		20 2/1 entering 2
		41 2/1 entered 7
		45 1/1 believed 42 50
		51 1/1 releasing
		90 1/1 ended OK
		60 2/1 releasing
		91 2/1 ended OK
		50 3/1 entering 2
		99 3/1 ended DeadlineExceeded WAIT_TIMEOUT`
	insideTogetherLog = `
		5 15 s1 create /barriers/B/a {"owner":"1/1"}
		6 25 s2 create /barriers/B/b {"owner":"2/1"}
		7 30 s9 make /barriers/B/ready x
		8 55 s3 create /barriers/B/c {"owner":"3/1"}
		9 70 s1 delete /barriers/B/a
		10 80 s2 delete /barriers/B/b
		11 80 s9 delete /barriers/B/ready
		12 95 s3 delete /barriers/B/c`
)

func TestCallersEnterADoubleBarrierTogetherAndLeaveItTogether(t *testing.T) {
	seen, logged := insideTogether, insideTogetherLog
	judgeAll(t, Barriers, []story{
		{name: "as promised", seen: seen, logged: logged},
		{
			name: "for one too few", seen: but(seen, "entering 2", "entering 3"), logged: logged,
			want: "round 7 of B began for 3 callers, and no more than 2 stood there at a time",
		},
		{
			name: "one after the other", seen: seen, want: "no more than 1 stood there at a time",
			logged: `
				4 14 s2 create /barriers/B/b {"owner":"2/1"}
				5 15 s2 delete /barriers/B/b
				6 25 s1 create /barriers/B/a {"owner":"1/1"}
				7 30 s9 make /barriers/B/ready x
				8 70 s1 delete /barriers/B/a`,
		},
		{
			name: "in a round of nobody's", seen: but(seen, "entered 7", "entered 6"), logged: logged,
			want: "client 1/1 entered round 6, which nobody has begun",
		},
		{
			name: "of a round that began before it came", logged: logged + "\n13 200 s4 create /barriers/B/d {\"owner\":\"4/1\"}\n14 210 s4 close",
			seen: seen + "\n35 4/1 entering 2\n205 4/1 entered 7\n206 4/1 releasing\n220 4/1 ended OK",
			want: "client 4/1 entered round 7, at whose beginning it did not stand at B",
		},
		{
			name: "when others had entered before", logged: logged,
			seen: but(seen, "50 3/1 entering 2", "50 3/1 entering 2\n60 3/1 entered 7"), want: "client 3/1 came when client 1/1 had entered round 7",
		},
		{
			name: "before it began", seen: but(seen, "40 1/1 entered", "28 1/1 entered"), logged: logged,
			want: "client 1/1 entered round 7 2ms before that began",
		},
		{
			name: "sure for too long", seen: but(seen, "believed 42 50", "believed 42 75"), logged: logged,
			want: "client 1/1 was sure to be inside B for 4ms after its place was gone",
		},
		{
			name: "left while another was inside", seen: but(seen, "90 1/1 ended", "75 1/1 ended"), logged: logged,
			want: "client 1/1 left round 7 of B while another was inside",
		},
		{
			name: "gave up waiting for another", seen: but(seen, "90 1/1 ended OK", "75 1/1 ended DeadlineExceeded"), logged: logged,
		},
		{
			name: "left late", seen: but(seen, "90 1/1 ended", "1090 1/1 ended"), logged: logged,
			want: "client 1/1 was told only after 1.009s that all of round 7 of B had left",
		},
	})
}

func TestBarriersThatArePassedAndEnteredAreCounted(t *testing.T) {
	v := Judge(story{seen: insideTogether + "\n100 5/1 awaiting\n110 5/1 ended OK", logged: insideTogetherLog}.round())
	if v.Passed != 1 || v.Entries != 2 {
		t.Errorf("%d passed, %d entered", v.Passed, v.Entries)
	}
}

func TestTheEndOfAnEntryIsTold(t *testing.T) {
	lost := but(insideTogether, "51 1/1 releasing\n", "\n", "90 1/1 ended OK", "90 1/1 ended Aborted LEASE_LOST")
	judgeAll(t, Losses, []story{
		{name: "lost", seen: lost, adjust: func(s *history.Settings) { s.Spares = false }},
		{name: "no reason", seen: but(lost, " LEASE_LOST", ""), want: "client 1/1 lost B"},
	})
}
