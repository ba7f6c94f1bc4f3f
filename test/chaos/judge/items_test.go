package judge

import "testing"

func TestAnItemThatHasNoHolderForTooLongIsTold(t *testing.T) {
	const held = `
		20 1/1 called S/000
		31 1/1 granted 5
		32 1/1 believed 31 20000`
	const second = `
		61001 2/1 releasing
		61002 2/1 ended OK
		70000 0/0 quiet`
	judgeAll(t, Items, []story{
		{name: "one that a member has, and then another", seen: "10 0/0 defined S 1" + held + `
			20001 1/1 ended Aborted LEASE_LOST
			20002 2/1 called S/000
			34000 2/1 granted 7` + second, logged: `
			5 30 s1 place 1/1 S%2F000
			6 20001 s1 expire
			7 33900 s2 place 2/1 S%2F000
			8 61002 s2 close`},
		{name: "one that is free for too long", seen: "10 0/0 defined S 1" + held + `
			20001 1/1 ended Aborted LEASE_LOST
			20002 2/1 called S/000
			47000 2/1 granted 7`, logged: `
			5 30 s1 place 1/1 S%2F000
			6 20001 s1 expire
			7 46500 s2 place 2/1 S%2F000`, want: "S/000 had no holder for 26.4"},
		{name: "one that was free for long, since a server was away", seen: "10 0/0 defined S 1" + held + `
			20001 1/1 ended Aborted LEASE_LOST
			41000 0/0 fault N3 server/1
			42000 0/0 heal N3 server/1
			20002 2/1 called S/000
			56000 2/1 granted 7` + second, logged: `
			5 30 s1 place 1/1 S%2F000
			6 20001 s1 expire
			7 55500 s2 place 2/1 S%2F000
			8 61002 s2 close`},
		{name: "one that no member gets any more", seen: "10 0/0 defined S 1" + held + `
			20001 1/1 ended Aborted LEASE_LOST`, logged: `
			5 30 s1 place 1/1 S%2F000
			6 20001 s1 expire`, want: "S/000 had no holder for 40.9"},
		{name: "one that no member ever gets", seen: "10 0/0 defined S 2" + held, logged: `
			5 30 s1 place 1/1 S%2F000`, want: "S/001 had no holder for 1m0.9"},
		{name: "one that is given up at the end", seen: "10 0/0 defined S 1" + held + `
			61001 1/1 releasing
			61002 1/1 ended OK
			70000 0/0 quiet`, logged: `
			5 30 s1 place 1/1 S%2F000
			6 61002 s1 close`},
	})
}

func TestANumberThatTwoHaveOrThatDoesNotRestIsTold(t *testing.T) {
	judgeAll(t, Pools, []story{
		{name: "two numbers", seen: `
			10 1/1 numbering P 500
			11 1/1 granted 5 0
			12 1/1 believed 11 900
			13 2/1 numbering P 500
			14 2/1 granted 6 1
			15 2/1 believed 14 900
			901 1/1 releasing
			902 1/1 ended OK
			903 2/1 releasing
			904 2/1 ended OK`},
		{name: "a number of two", seen: `
			10 1/1 numbering P 500
			11 1/1 granted 5 0
			12 1/1 believed 11 900
			13 2/1 numbering P 500
			14 2/1 granted 6 0
			15 2/1 believed 14 800
			801 2/1 releasing
			802 2/1 ended OK
			901 1/1 releasing
			902 1/1 ended OK`, want: "were both sure of a number of P"},
		{name: "a number that its caller has released", seen: `
			10 1/1 numbering P 500
			11 1/1 granted 5 3
			12 1/1 believed 11 20
			21 1/1 releasing
			22 1/1 ended OK
			23 2/1 numbering P 500
			24 2/1 granted 6 3
			25 2/1 releasing
			26 2/1 ended OK`},
		{name: "a lost number that rested", seen: `
			9 0/0 fault N7 sidecar/1
			10 1/1 numbering P 500
			11 1/1 granted 5 3
			12 1/1 believed 11 20
			22 1/1 ended Aborted LEASE_LOST
			23 2/1 numbering P 1
			520 2/1 granted 6 3
			521 2/1 releasing
			522 2/1 ended OK`},
		{name: "a lost number that did not rest", seen: `
			9 0/0 fault N7 sidecar/1
			10 1/1 numbering P 500
			11 1/1 granted 5 3
			12 1/1 believed 11 20
			22 1/1 ended Aborted LEASE_LOST
			23 2/1 numbering P 1
			519 2/1 granted 6 3
			520 2/1 releasing
			522 2/1 ended OK`, want: "was granted the number 3 of P 499ms after client 1/1"},
		{name: "the number of a client that was killed", seen: `
			9 0/0 fault N10c client/1
			10 1/1 numbering P 500
			11 1/1 granted 5 3
			21 0/0 killed client/1
			23 2/1 numbering P 1
			400 2/1 granted 6 3
			520 2/1 releasing
			522 2/1 ended OK`, want: "was granted the number 3 of P 389ms after client 1/1"},
	})
}
