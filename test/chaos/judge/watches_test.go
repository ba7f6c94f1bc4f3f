package judge

import (
	"testing"
)

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
