package judge

import (
	"testing"
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

func TestALossThatWasNeverToldIsTold(t *testing.T) {
	judgeAll(t, Leftovers, []story{{
		name: "a holder that hears nothing of its lock any more",
		seen: `
			10 1/1 called L
			20 1/1 granted 5`,
		want: "never heard again",
	}})
}
