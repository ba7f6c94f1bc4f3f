package judge

import (
	"testing"
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
			name: "a grant of Curator's behind a claim",
			seen: `
				12 2/1 called L
				41 2/1 granted 6
				50 2/1 ended user`,
			logged: `
				5 11 s1 make /locks/L/_c_a-claim-lock-0000000001 {"owner":"1/1"}
				6 12 s2 create /locks/L/_c_b-lock-0000000002 10.0.0.7
				7 40 s1 delete /locks/L/_c_a-claim-lock-0000000001
				8 50 s2 delete /locks/L/_c_b-lock-0000000002`,
		},
		{
			name: "a grant of Curator's beside a claim",
			seen: `
				12 2/1 called L
				20 2/1 granted 6
				50 2/1 ended user`,
			logged: `
				5 11 s1 make /locks/L/_c_a-claim-lock-0000000001 {"owner":"1/1"}
				6 12 s2 create /locks/L/_c_b-lock-0000000002 10.0.0.7
				7 40 s1 delete /locks/L/_c_a-claim-lock-0000000001
				8 50 s2 delete /locks/L/_c_b-lock-0000000002`,
			want: "at least 20ms before its turn came at zxid 0x7",
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
