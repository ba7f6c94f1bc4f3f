package judge

import "testing"

func TestNobodyIsGrantedALockBeforeTheDelayIsOver(t *testing.T) {
	const waits = `
		12 1/1 called L
		20 1/1 granted 5
		900 1/1 ended Aborted LEASE_LOST
		21 2/1 called L
		2000 2/1 ended user`
	const lost = `
		4 10 s9 make /locks/L free:0
		5 11 s1 place 1/1 L
		6 12 s1 put /locks/L held:5:400 1
		7 22 s2 place 2/1 L
		8 500 s1 expire
		10 1999 s2 gone 2/1 L`
	judgeAll(t, Delays, []story{
		{name: "after it", seen: waits + "\n910 2/1 granted 7", logged: lost},
		{
			name: "before it", seen: waits + "\n890 2/1 granted 7", logged: lost,
			want: "2/1 was granted L 10ms before the delay after the hold 5 was over",
		},
		{
			name: "after a hold that was given up", seen: waits + "\n510 2/1 granted 7", logged: `
				4 10 s9 make /locks/L free:0
				5 11 s1 place 1/1 L
				6 12 s1 put /locks/L held:5:400 1
				7 22 s2 place 2/1 L
				8 500 s1 gone 1/1 L
				9 500 s1 put /locks/L free:5 2
				10 1999 s2 gone 2/1 L`,
		},
		{
			name: "after a hold without one", seen: waits + "\n510 2/1 granted 7", logged: `
				5 11 s1 place 1/1 L
				7 22 s2 place 2/1 L
				8 500 s1 expire
				10 1999 s2 gone 2/1 L`,
		},
	})
}
