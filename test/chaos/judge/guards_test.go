package judge

import "testing"

func TestGuardedWritesAreOfWhoHoldsTheLock(t *testing.T) {
	const two = `
		12 2/1 called L
		20 1/1 called L
		60 2/1 ended user
		61 1/1 ended user`
	judgeAll(t, Guards, []story{
		{
			name: "while it was held", seen: two, logged: `
				5 11 s1 place 1/1 L
				6 12 s9 create /config/L/guarded 5
				7 13 s2 place 2/1 L
				8 14 s9 put /config/L/guarded 5 1
				9 15 s1 gone 1/1 L
				10 16 s9 put /config/L/guarded 7 2
				11 17 s2 gone 2/1 L`,
		},
		{
			name: "after its place had gone", seen: two, logged: `
				5 11 s1 place 1/1 L
				6 12 s1 gone 1/1 L
				7 13 s9 create /config/L/guarded 5`,
			want: "at zxid 0x7 a write was carried out that L guarded with token 5",
		},
		{
			name: "by one that waited", seen: two, logged: `
				5 11 s1 place 1/1 L
				6 12 s2 place 2/1 L
				7 13 s9 create /config/L/guarded 6`,
			want: "guarded with token 6",
		},
		{
			name: "with a token that nobody had", seen: two, logged: `
				5 11 s1 place 1/1 L
				6 12 s9 create /config/L/guarded 4`,
			want: "guarded with token 4",
		},
		{
			name: "as a member that was to be one while it was held", seen: two, logged: `
				5 11 s1 place 1/1 L
				6 12 s9 create /groups/L%2Fguarded/5
				7 13 s1 gone 1/1 L`,
		},
		{
			name: "as a member that came too late", seen: two, logged: `
				5 11 s1 place 1/1 L
				6 12 s1 gone 1/1 L
				7 13 s9 create /groups/L%2Fguarded/5`,
			want: "at zxid 0x7 a write was carried out that L guarded with token 5",
		},
		{
			name: "as a member that was changed too late", seen: two, logged: `
				5 11 s1 place 1/1 L
				6 12 s9 create /groups/L%2Fguarded/5
				7 13 s1 gone 1/1 L
				8 14 s9 put /groups/L%2Fguarded/5 x 1`,
			want: "at zxid 0x8 a write was carried out that L guarded with token 5",
		},
		{
			name: "what nothing guards", seen: two, logged: `
				5 11 s1 place 1/1 L
				6 12 s1 gone 1/1 L
				7 13 s9 create /config/L/unguarded 5`,
		},
	})
}

func TestWritesWithoutAGuardThatComeTooLateAreCounted(t *testing.T) {
	v := Judge(story{seen: "10 1/1 called L\n20 1/1 ended user", logged: `
		5 11 s1 place 1/1 L
		6 12 s9 create /config/L/unguarded 5
		7 13 s9 create /config/L/guarded 5
		8 14 s1 gone 1/1 L
		9 15 s9 put /config/L/unguarded 5 1`}.round())
	if v.Guarded != 1 || v.TooLate != 1 {
		t.Errorf("%d guarded, %d too late", v.Guarded, v.TooLate)
	}
}
