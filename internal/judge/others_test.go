package judge

import (
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/history"
)

func TestWhatIsLeftIsTold(t *testing.T) {
	held := `
		10 1/1 called L
		20 1/1 granted 5
		30 1/1 ended user`
	gone := `
		5 11 s1 place 1/1 L
		6 30 s1 gone 1/1 L`
	judgeAll(t, Leftovers, []story{
		{name: "nothing", seen: held, logged: gone, residue: &Residue{Sessions: 3, Expected: 3}},
		{name: "a node", seen: held, logged: `5 11 s1 place 1/1 L`, want: "_c_1-1-lock-0000000001 is still there"},
		{name: "a node that the conductor found", seen: held, residue: &Residue{Nodes: []string{"/locks/x"}}, want: "/locks/x was left"},
		{name: "sessions", seen: held, residue: &Residue{Sessions: 5, Expected: 3}, want: "2 sessions"},
		{name: "fewer sessions than there may be", seen: held, residue: &Residue{Sessions: 2, Expected: 3}},
		{
			name: "goroutines", seen: held, residue: &Residue{Processes: []Process{{Name: "sidecar 1", GoroutinesBefore: 100, GoroutinesAfter: 116}}},
			want: "sidecar 1 has 116 goroutines, and had 100",
		},
		{
			name: "descriptors", seen: held, residue: &Residue{Processes: []Process{{Name: "sidecar 1", DescriptorsBefore: 20, DescriptorsAfter: 32}}},
			want: "sidecar 1 has 32 file descriptors",
		},
		{
			name: "a few goroutines and descriptors more", seen: held,
			residue: &Residue{Processes: []Process{{GoroutinesBefore: 100, GoroutinesAfter: 115, DescriptorsBefore: 20, DescriptorsAfter: 31}}},
		},
		{name: "a call for a lock that nobody answered", seen: `10 1/1 called L`, want: "client 1/1 never heard again of what it called"},
		{name: "a question for numbers that nobody answered", seen: `10 1/1 asked S 1 strict`, want: "what it asked"},
		{name: "a change that nobody answered", seen: `10 1/1 invoked put k a`, want: "what it invoked"},
		{name: "calls of a caller that is dead", seen: `
			10 1/1 called L
			10 1/2 asked S 1 strict
			10 1/3 invoked put k a
			20 c killed client/1`},
		{
			name: "a place that stays long after its caller has gone",
			seen: held, logged: `
				5 11 s1 place 1/1 L
				6 4100 s1 gone 1/1 L`,
			want: "its place in the queue of L stayed",
		},
		{
			name: "a place that stays as long as its session may",
			seen: `
				10 1/1 called L
				20 1/1 granted 5
				30 c killed client/1`, logged: `
				5 11 s1 place 1/1 L
				6 2100 s1 expire`,
		},
		{
			name: "a place that stays while the ensemble is cut",
			seen: held + `
				25 c fault N2 server/1
				9000 c heal N2 server/1`, logged: `
				5 11 s1 place 1/1 L
				6 10000 s1 expire`,
		},
		{
			name: "one whose turn it is, and that does not hear of it",
			seen: `
				10 1/1 called L
				2000 1/1 ended user`,
			logged: `
				5 11 s1 place 1/1 L
				6 2000 s1 gone 1/1 L`,
			want: "heard only after 1.988s",
		},
		{
			name: "one that does not hear of its turn for long after another caller was killed",
			seen: `
				5 c fault N5 client/9
				20 c killed client/9
				10 1/1 called L
				3000 1/1 ended user`,
			logged: `
				5 11 s1 place 1/1 L
				6 3000 s1 gone 1/1 L`,
			want: "heard only after 2.988s",
		},
		{
			name: "one that hears late of its turn, after a heal",
			seen: `
				5 c fault N1 server/1
				1500 c heal N1 server/1
				10 1/1 called L
				2000 1/1 granted 5
				2001 1/1 ended user`,
			logged: `
				5 11 s1 place 1/1 L
				6 2000 s1 gone 1/1 L`,
		},
		{
			name: "one that waits for long behind another",
			seen: `
				10 2/1 called L
				9010 2/1 granted 6
				9020 2/1 ended user`,
			logged: `
				5 11 s1 place 1/1 L
				6 12 s2 place 2/1 L
				7 9000 s1 gone 1/1 L
				8 9020 s2 gone 2/1 L`,
		},
		{
			name: "two places at once", seen: held,
			logged: `
				4 10 s1 create /locks/L/_c_a-lock-0000000001 {"owner":"1/1"}
				5 11 s1 create /locks/L/_c_b-lock-0000000002 {"owner":"1/1"}
				6 12 s1 delete /locks/L/_c_a-lock-0000000001
				7 30 s1 delete /locks/L/_c_b-lock-0000000002`,
			want: "two places",
		},
		{
			name: "a place that was taken anew", seen: held,
			logged: `
				3 10 s1 create /locks/L/_c_a-lock-0000000001 {"owner":"1/1"}
				4 11 s1 delete /locks/L/_c_a-lock-0000000001
				5 12 s1 create /locks/L/_c_b-lock-0000000002 {"owner":"1/1"}
				7 30 s1 delete /locks/L/_c_b-lock-0000000002`,
		},
	})
}

func TestNumbersThatAreHandedOutTwiceOrOutOfOrderAreTold(t *testing.T) {
	judgeAll(t, Numbers, []story{
		{name: "one after the other", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 1 1
			12 1/2 asked S 3 strict
			13 1/2 got 2 3
			14 2/1 asked S 1 strict
			15 2/1 got 5 1`},
		{name: "the same number twice", seen: `
			10 1/1 asked S 1 relaxed
			11 1/1 got 7 1
			12 2/1 asked S 1 relaxed
			13 2/1 got 7 1`, want: "got 7 to 7"},
		{name: "ranges that overlap", seen: `
			10 1/1 asked S 10 relaxed
			11 1/1 got 1 10
			12 2/1 asked S 10 relaxed
			13 2/1 got 10 10`, want: "got 1 to 10 of S, and client 2/1 got 10 to 19"},
		{name: "a number within a range two before", seen: `
			10 1/1 asked S 10 relaxed
			11 1/1 got 1 10
			12 2/1 asked S 1 relaxed
			13 2/1 got 2 1
			14 2/2 asked S 1 relaxed
			15 2/2 got 9 1`, want: "got 9 to 9"},
		{name: "a smaller number for one that asked later", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 7 1
			12 2/1 asked S 1 strict
			13 2/1 got 6 1`, want: "when client 1/1 had 7, and got 6"},
		{name: "a smaller number much later, after larger ones", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 7 1
			12 1/2 asked S 1 strict
			13 1/2 got 8 1
			90 2/1 asked S 1 strict
			99 2/1 got 1 1`, want: "had 8, and got 1"},
		{name: "a number below the larger of two that were known in the other order", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 9 1
			10 2/1 asked S 1 strict
			12 2/1 got 7 1
			20 3/1 asked S 1 strict
			21 3/1 got 8 1`, want: "when client 1/1 had 9, and got 8"},
		{name: "more numbers than were asked for", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 7 2`, want: "got 2"},
		{name: "numbers of a sequence that was made anew", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 7 1 1
			12 2/1 asked S 1 strict
			13 2/1 got 7 1 2`},
		{name: "a smaller number for one that asked at the same time", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 7 1
			11 2/1 asked S 1 strict
			13 2/1 got 6 1`},
		{name: "relaxed numbers in any order, and gaps after failures", seen: `
			10 1/1 asked S 1 relaxed
			11 1/1 got 70 1
			12 2/1 asked S 1 relaxed
			13 2/1 got 6 1
			14 2/2 asked S 1 strict
			15 2/2 failed Aborted OUTCOME_UNKNOWN
			16 2/3 asked S 1 strict
			17 2/3 got 100 1`},
		{name: "the same numbers of two sequences", seen: `
			10 1/1 asked S 1 strict
			11 1/1 got 1 1
			12 2/1 asked T 1 strict
			13 2/1 got 1 1`},
	})
}

func TestAConfigurationThatIsNotLinearizableIsTold(t *testing.T) {
	put := `
		10 1/1 invoked put k a
		20 1/1 returned ok put k a ->1/5`
	judgeAll(t, Configuration, []story{
		{name: "a read of what was put", seen: put + `
			30 2/1 invoked get k
			40 2/1 returned ok get k a ->1/5`},
		{name: "a read of nothing after a put", seen: put + `
			30 2/1 invoked get k
			40 2/1 returned ok get k`, want: "Illegal"},
		{name: "a local read of what was, on another sidecar's word", seen: put + `
			21 1/2 invoked put k b
			29 1/2 returned ok put k b ->2/6
			30 2/1 invoked look k
			40 2/1 returned ok look k a`},
		{name: "a local read of what is older than what the sidecar wrote", seen: put + `
			21 1/2 invoked put k b
			29 1/2 returned ok put k b ->2/6
			30 2/1 invoked look k
			40 2/1 returned ok look k a ->1/5`, want: "sidecar 1 showed client 2/1 revision 5 of k, and client 1/2 had seen 6"},
		{name: "the same after the sidecar was started anew", seen: put + `
			21 1/2 invoked put k b
			29 1/2 returned ok put k b ->2/6
			29.5 c killed sidecar/1
			30 2/1 invoked look k
			40 2/1 returned ok look k a ->1/5`},
		{name: "two writes that each were the first", seen: put + `
			30 2/1 invoked put k b
			40 2/1 returned ok put k b ->1/6`, want: "Illegal"},
		{name: "a put that demanded a version that was not there", seen: put + `
			30 2/1 invoked put k b if9
			40 2/1 returned ok put k b if9 ->2/6`, want: "Illegal"},
		{name: "a demand that is met, and one that is not", seen: put + `
			30 2/1 invoked put k b if1
			40 2/1 returned ok put k b if1 ->2/6
			50 2/2 invoked put k c if1
			60 2/2 returned refused PRECONDITION_FAILED
			70 2/3 invoked put k c if-1
			80 2/3 returned refused PRECONDITION_FAILED`},
		{name: "a demand that is refused though it is met", seen: put + `
			30 2/1 invoked put k b if1
			40 2/1 returned refused PRECONDITION_FAILED`, want: "Illegal"},
		{name: "a put that never got there", seen: put + `
			30 2/1 invoked put k b if1
			40 2/1 returned refused ENSEMBLE_UNREACHABLE`},
		{name: "a put without an answer, that is done late", seen: put + `
			30 2/1 invoked put k b
			40 2/1 returned unknown OUTCOME_UNKNOWN
			50 1/2 invoked get k
			60 1/2 returned ok get k a ->1/5
			70 1/3 invoked get k
			80 1/3 returned ok get k b ->2/9`},
		{
			name: "the same, when the logs tell that it was done before what was read first", seen: put + `
				30 2/1 invoked put k b
				40 2/1 returned unknown OUTCOME_UNKNOWN
				42 1/9 invoked put other x
				44 1/9 returned ok put other x ->1/12
				50 1/2 invoked get k
				60 1/2 returned ok get k a ->1/5
				70 1/3 invoked get k
				80 1/3 returned ok get k b ->2/9`,
			logged: `
				4 11 s1 make /config/k
				5 11 s1 put /config/k a 1
				9 35 s2 put /config/k b 2
				11 43 s1 make /config/other
				12 43 s1 put /config/other x 1`,
			want: "Illegal",
		},
		{
			name: "a put without an answer that the logs know nothing of", seen: put + `
				30 2/1 invoked put k b
				40 2/1 returned unknown OUTCOME_UNKNOWN
				50 1/2 invoked get k
				60 1/2 returned ok get k a ->1/5`,
			logged: `
				4 11 s1 make /config/k
				5 11 s1 put /config/k a 1`,
		},
		{
			name: "what is read of a put that the logs know nothing of", seen: put + `
				30 2/1 invoked put k b
				40 2/1 returned unknown OUTCOME_UNKNOWN
				50 1/2 invoked get k
				60 1/2 returned ok get k b ->2/6`,
			logged: `
				4 11 s1 make /config/k
				5 11 s1 put /config/k a 1`,
			want: "Illegal",
		},
		{name: "a caller that is killed in the middle of a deletion", seen: put + `
			30 2/1 invoked delete k
			35 c killed client/2
			50 1/2 invoked get k
			60 1/2 returned ok get k
			61 1/3 invoked put k b
			62 1/3 returned ok put k b ->1/9`},
		{name: "several keys at once", seen: put + `
			30 2/1 invoked put k b put l b
			40 2/1 returned ok put k b ->2/6 put l b ->1/6
			50 2/2 invoked put k c if1 put l c
			60 2/2 returned refused PRECONDITION_FAILED
			70 1/2 invoked get l
			80 1/2 returned ok get l b ->1/6`},
		{name: "half of several keys", seen: put + `
			30 2/1 invoked put k b put l b
			40 2/1 returned ok put k b ->2/6 put l b ->1/6
			70 1/2 invoked get l
			80 1/2 returned ok get l`, want: "Illegal"},
	})
}

func TestWatchersThatAreToldWhatIsNotSoAreTold(t *testing.T) {
	log := `
		4 10 s1 make /config/k
		5 10 s1 put /config/k a 1
		6 20 s1 put /config/k b 2
		7 30 s1 put /config/k c 3
		8 40 s1 delete /config/k
		9 50 s1 make /config/k
		10 50 s1 put /config/k d 1`
	watch := func(told string) string {
		return `
			9 1/1 watching keys k
			9 1/1 synced` + told
	}
	all := `
		11 1/1 changed k=a@1/5/4
		21 1/1 changed k=b@2/6/4
		31 1/1 changed k=c@3/7/4
		41 1/1 changed -k
		51 1/1 changed k=d@1/10/9`
	judgeAll(t, Watches, []story{
		{name: "every change", logged: log, seen: watch(all)},
		{name: "the state at the beginning, and then gaps that are told", logged: log, seen: `
			21 1/1 watching prefix k
			22 1/1 state k=b@2/6/4
			23 1/1 synced
			51 1/1 changed k=d@1/10/9 recreated`},
		{name: "several changes in one", logged: log, seen: watch(`
			35 1/1 changed k=c@3/7/4 coalesced
			41 1/1 changed -k
			51 1/1 changed k=d@1/10/9`)},
		{name: "out of contact and back", logged: log, seen: watch(`
			11 1/1 changed k=a@1/5/4
			12 1/1 lagging
			51 1/1 changed k=d@1/10/9 recreated
			52 1/1 fresh`)},
		{name: "an end before the last change", logged: log, seen: watch(`
			11 1/1 changed k=a@1/5/4
			15 1/1 ended Unavailable SIDECAR_STOPPING`)},
		{name: "a watcher that is killed", logged: log, seen: watch(`
			11 1/1 changed k=a@1/5/4
			12 c killed client/1`)},
		{name: "the same change twice", seen: watch(`
			11 1/1 changed k=a@1/5/4
			12 1/1 changed k=a@1/5/4`), want: "twice of revision 5"},
		{name: "an older value after a newer one", seen: watch(`
			11 1/1 changed k=b@2/6/4 coalesced
			12 1/1 changed k=a@1/5/4`), want: "revision 5 of k after 6"},
		{name: "an older value after a deletion", seen: watch(`
			11 1/1 changed k=b@2/6/4 coalesced
			12 1/1 changed -k
			13 1/1 changed k=a@1/5/4`), want: "revision 5 of k after 6"},
		{name: "a gap that is not told", seen: watch(`
			11 1/1 changed k=a@1/5/4
			12 1/1 changed k=c@3/7/4`), want: "coalesced false"},
		{name: "a gap that is none", seen: watch(`
			11 1/1 changed k=a@1/5/4
			12 1/1 changed k=b@2/6/4 coalesced`), want: "coalesced true"},
		{name: "another incarnation that is not told", seen: watch(`
			11 1/1 changed k=a@1/5/4
			12 1/1 changed k=d@1/10/9`), want: "recreated false"},
		{name: "another incarnation that is none", seen: watch(`
			11 1/1 changed k=a@1/5/4
			12 1/1 changed k=b@2/6/4 recreated`), want: "recreated true"},
		{name: "a deletion of what it did not know", seen: watch(`
			12 1/1 changed -k`), want: "of which it knew nothing"},
		{name: "a deletion of what is there", logged: log, seen: watch(`
			11 1/1 changed k=a@1/5/4
			21 1/1 changed -k
			25 1/1 ended user`), want: "which was there"},
		{name: "what was never written", logged: log, seen: watch(`
			11 1/1 changed k=z@1/5/4
			15 1/1 ended user`), want: "not what revision 5 wrote"},
		{name: "a revision that nobody wrote", logged: log, seen: watch(`
			11 1/1 changed k=a@1/3/2
			15 1/1 ended user`), want: "which nobody wrote"},
		{name: "a value before it was written", logged: log, seen: watch(`
			11 1/1 changed k=b@2/6/4 coalesced
			15 1/1 ended user`), want: "by then"},
		{name: "another key", seen: watch(`
			11 1/1 changed l=a@1/5/4`), want: "for which it had not asked"},
		{name: "a change before the state is complete", seen: `
			10 1/1 watching keys k
			11 1/1 changed k=a@1/5/4`, want: "synced: false"},
		{name: "a state after it was complete", seen: watch(`
			11 1/1 state k=a@1/5/4`), want: "synced: true"},
		{name: "twice complete", seen: watch(`
			11 1/1 synced`), want: "twice that it was synced"},
		{name: "back without having been away", seen: watch(`
			11 1/1 fresh`), want: "never that it was not"},
		{name: "not the last value", logged: log, seen: watch(`
			11 1/1 changed k=a@1/5/4`), want: "ended up with revision 5 of k, of which there was 10"},
		{name: "no value where there is one", logged: log, seen: watch(""), want: "ended up without k, of which there was revision 10"},
		{name: "an old value at the end of a watch that had the time to hear of a newer one", logged: log, seen: watch(`
			11 1/1 changed k=a@1/5/4
			1500 1/1 ended user`), want: "of which there was 10"},
		{name: "an old value at the end of a watch, while the ensemble is cut", logged: log, seen: watch(`
			11 1/1 changed k=a@1/5/4
			12 c fault N1 server/1
			900 c heal N1 server/1
			1500 1/1 ended user`)},
		{name: "a deletion that it knows of before it must", logged: log + `
			11 1400 s1 delete /config/k`, seen: watch(all + `
			1400 1/1 changed -k
			1500 1/1 ended user`)},
		{name: "a key that was deleted", logged: log + `
			11 60 s1 delete /config/k`, seen: watch(all), want: "ended up with revision 10 of k, of which there was 11"},
		{name: "a change in the last moment of a round", logged: log, seen: watch(`
			11 1/1 changed k=a@1/5/4
			500 c quiet`)},
		{name: "a watch that ends before its state is complete", logged: log, seen: `
			9 1/1 watching keys k
			9 1/1 state
			5000 1/1 ended Unavailable ENSEMBLE_UNREACHABLE`},
		{name: "a container that is no key", logged: log + `
			11 60 s1 make /config/k/below`, seen: `
			21 1/1 watching prefix k
			22 1/1 state k=b@2/6/4
			23 1/1 synced
			51 1/1 changed k=d@1/10/9 recreated`},
	})
}

func TestWatchersOfGroupsThatSeeWhatIsNotSoAreTold(t *testing.T) {
	log := `
		5 10 s1 create /groups/G/a
		6 20 s2 create /groups/G/b
		7 30 s1 expire
		8 40 s3 create /groups/G/a`
	leave := `
		9 50000 s2 delete /groups/G/b
		10 50000 s3 delete /groups/G/a`
	judgeAll(t, Membership, []story{
		{name: "each as it comes and goes", logged: log + leave, seen: `
			9 1/1 watching group G
			9 1/1 seen
			11 1/1 seen a:5 +a:5
			21 1/1 seen a:5 b:6 +b:6
			31 1/1 seen b:6 -a:5
			41 1/1 seen a:8 b:6 +a:8
			50001 1/1 seen -a:8 -b:6`},
		{name: "several at once", logged: log + leave, seen: `
			15 1/1 watching group G
			15 1/1 seen a:5 +a:5
			41 1/1 seen b:6 a:8 -a:5 +a:8 +b:6
			50001 1/1 seen -a:8 -b:6`},
		{name: "old views while the ensemble is cut", logged: log + leave, seen: `
			9 1/1 watching group G
			12 c fault N1 server/1
			11 1/1 seen a:5 +a:5
			13 1/1 seen a:5 stale
			3000 c heal N1 server/1
			3100 1/1 seen b:6 a:8 -a:5 +a:8 +b:6
			50001 1/1 seen -a:8 -b:6`},
		{name: "an end of the watch", logged: log + leave, seen: `
			9 1/1 watching group G
			11 1/1 seen a:5 +a:5
			12 1/1 ended Unavailable SIDECAR_STOPPING`},
		{name: "a member that is missing while it is there", logged: log + leave, seen: `
			15 1/1 watching group G
			15 1/1 seen a:5 +a:5
			18 1/1 seen -a:5
			19 1/1 ended user`, want: "leave that was still there"},
		{name: "a member that comes back", logged: log + leave, seen: `
			15 1/1 watching group G
			25 1/1 seen a:5 b:6 +a:5 +b:6
			31 1/1 seen b:6 -a:5
			32 1/1 seen a:5 b:6 +a:5
			33 1/1 ended user`, want: "come back"},
		{name: "a member that was never there", logged: log + leave, seen: `
			15 1/1 watching group G
			25 1/1 seen z:4 +z:4
			33 1/1 ended user`, want: "when there was none"},
		{name: "a member before it is there", logged: log + leave, seen: `
			15 1/1 watching group G
			16 1/1 seen a:5 b:6 +a:5 +b:6
			33 1/1 ended user`, want: "when there was none"},
		{name: "a view that does not follow from the one before", seen: `
			15 1/1 watching group G
			16 1/1 seen a:5 +a:5
			17 1/1 seen a:5 b:6`, want: "with [] joined"},
		{name: "one that left and is in the view", seen: `
			15 1/1 watching group G
			16 1/1 seen a:5 +a:5
			17 1/1 seen a:5 -a:5`, want: "[{Name:a Incarnation:5}] left"},
		{name: "a member that is never seen", logged: log + leave, seen: `
			9 1/1 watching group G
			11 1/1 seen a:5 +a:5
			31 1/1 seen -a:5
			41 1/1 seen a:8 +a:8
			50001 1/1 seen -a:8`, want: "had not seen {Name:b Incarnation:6} come"},
		{name: "a member that is never seen to go", logged: log + leave, seen: `
			21 1/1 watching group G
			22 1/1 seen a:5 b:6 +a:5 +b:6
			31 1/1 seen b:6 -a:5
			41 1/1 seen a:8 b:6 +a:8
			50001 1/1 seen b:6 -a:8`, want: "had not seen {Name:b Incarnation:6} go"},
		{name: "a member that knows itself to be there, without logs", seen: `
			9 2/1 joining G a
			10 2/1 joined 5
			30 2/1 releasing
			31 2/1 ended user
			9 1/1 watching group G
			11 1/1 seen a:5 +a:5
			29 1/1 seen -a:5`, want: "leave that was still there"},
		{name: "a member that is about to leave, and one that has been lost, without logs", seen: `
			9 2/1 joining G a
			10 2/1 joined 5
			30 2/1 releasing
			35 2/1 ended user
			9 3/1 joining G b
			10 3/1 joined 6
			11 c fault N1 server/1
			900 3/1 ended Aborted LEASE_LOST
			9 1/1 watching group G
			11 1/1 seen a:5 b:6 +a:5 +b:6
			30 1/1 seen b:6 -a:5
			40 1/1 seen -b:6`},
	})
}

func TestLossesThatAreNotToldAsTheyShouldAreTold(t *testing.T) {
	held := func(end string) string {
		return `
			10 1/1 called L
			20 1/1 granted 5
			21 c fault N1 server/1
			30 c heal N1 server/1` + end
	}
	judgeAll(t, Losses, []story{
		{name: "a loss with its reason", seen: held(`
			40 1/1 ended Aborted LEASE_LOST`)},
		{name: "a release", seen: held(`
			40 1/1 releasing
			41 1/1 ended OK`)},
		{name: "a loss while it is released", seen: held(`
			40 1/1 releasing
			41 1/1 ended Aborted LEASE_LOST`)},
		{name: "a break by an operator", seen: held(`
			40 1/1 ended Aborted LOCK_BROKEN`)},
		{name: "a stream that is cut, of a sidecar that was killed", seen: held(`
			39 c killed sidecar/1
			40 1/1 ended Unavailable`)},
		{name: "a caller that is dead", seen: held(`
			40 c killed client/1`)},
		{name: "an end that is told twice", seen: held(`
			40 1/1 ended Aborted LEASE_LOST
			41 1/1 ended Aborted LEASE_LOST`), want: "told its end 2 times"},
		{name: "an end with OK", seen: held(`
			40 1/1 ended OK`), want: "though nobody had released it"},
		{name: "an end with another reason", seen: held(`
			40 1/1 ended Unavailable ENSEMBLE_UNREACHABLE`), want: "no reason to lose it"},
		{name: "an end without a reason", seen: held(`
			40 1/1 ended Internal`), want: `"Internal" ""`},
		{name: "a connection that breaks by itself, which is counted", seen: held(`
			40 1/1 ended Unavailable`)},
		{name: "an end without a reason of a caller that is being shaken", seen: held(`
			39 c fault N8 client/1
			40 1/1 ended Canceled`)},
		{name: "a loss that is told late", seen: held(`
			1100 1/1 ended Aborted LEASE_LOST`), logged: `
			5 11 s1 place 1/1 L
			6 60 s1 expire`, want: "heard of it only after 1.039s"},
		{name: "a loss that is told late to a caller that was frozen", seen: held(`
			45 c fault N5 client/1
			1000 c heal N5 client/1
			1100 1/1 ended Aborted LEASE_LOST`), logged: `
			5 11 s1 place 1/1 L
			6 60 s1 expire`},
		{name: "a member that is lost for no reason", seen: `
			10 1/1 joining G m
			20 1/1 joined 5
			30 1/1 ended Internal INTERNAL`, want: "no reason to lose it"},
		{name: "a member that is replaced", seen: `
			10 1/1 joining G m
			20 1/1 joined 5
			30 1/1 ended Aborted MEMBER_REPLACED`},
		{name: "a failure before anything was granted", seen: `
			10 1/1 called L
			30 1/1 ended Unavailable ENSEMBLE_UNREACHABLE`},
	})
}

func TestALossThatWasNeverToldIsTold(t *testing.T) {
	judgeAll(t, Leftovers, []story{{
		name: "a holder that hears nothing of its lock any more",
		seen: `
			10 1/1 called L
			20 1/1 granted 5`,
		want: "never heard again",
	}})
}

func TestNeedlessLossesAreCounted(t *testing.T) {
	lost := `
		10 1/1 called L
		20 1/1 granted 5
		40 1/1 ended Aborted LEASE_LOST`
	faulty := lost + `
		30 c fault N3 server/1
		50 c heal N3 server/1`
	spares := func(s *history.Settings) { s.Spares = true }
	for _, c := range []struct {
		story

		losses, needless int
	}{
		{story{name: "by a fault", seen: faulty}, 1, 0},
		{story{name: "by a fault that must not cost a lease", seen: faulty, adjust: spares}, 1, 1},
		{story{name: "without any fault", seen: lost}, 1, 1},
		{story{name: "before the first fault", seen: lost + `
			41 c fault N3 server/1`}, 1, 1},
		{story{name: "by a connection that broke by itself", seen: `
			10 1/1 called L
			20 1/1 granted 5
			30 c fault N3 server/1
			40 1/1 ended Unavailable`}, 1, 1},
		{story{name: "by a connection of a sidecar that was killed", seen: `
			10 1/1 called L
			20 1/1 granted 5
			30 c killed sidecar/1
			40 1/1 ended Unavailable`}, 1, 0},
		{story{name: "none: it was released", seen: `
			10 1/1 called L
			20 1/1 granted 5
			40 1/1 ended user`, adjust: spares}, 0, 0},
	} {
		verdict := Judge(c.round())
		if verdict.Losses != c.losses || verdict.NeedlessLosses != c.needless {
			t.Errorf("%s: %d losses, %d needless", c.name, verdict.Losses, verdict.NeedlessLosses)
		}
	}
}
