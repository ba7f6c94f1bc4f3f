package zookeeper

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// What a heartbeat is told of the places that it checks rests on which result is whose.
func TestAnAnswerToAMultiIsBelievedOnlyIfItHasAResultForEachOperation(t *testing.T) {
	t.Parallel()
	checks := []operation{checkOf("/a", 1), checkOf("/b", 2)}
	check, set, end := appendOperation(nil, opCheck, false), appendOperation(nil, opSetData, false), appendOperation(nil, opError, true)
	refused := func(code int32) []byte {
		return binary.BigEndian.AppendUint32(appendOperation(nil, opError, false), uint32(code))
	}
	join := slices.Concat[[]byte]
	for _, c := range []struct {
		name   string
		answer []byte
		err    error
		index  int // of what was refused
	}{
		{name: "both hold", answer: join(check, check, end)},
		{name: "the first is refused", answer: join(refused(-103), refused(-2), end), err: recipes.ErrBadVersion},
		{name: "the second is refused", answer: join(refused(0), refused(-101), end), err: recipes.ErrNoNode, index: 1},
		{name: "the session has moved", answer: join(refused(-118), refused(-2), end), err: zk.ErrSessionMoved, index: -1},
		{name: "the session has expired", answer: join(refused(-112), refused(-2), end), err: zk.ErrSessionExpired, index: -1},
		{name: "nothing", err: zk.ErrAPIError, index: -1},
		{name: "no results", answer: end, err: zk.ErrAPIError, index: -1},
		{name: "one result", answer: join(check, end), err: zk.ErrAPIError, index: -1},
		{name: "three results", answer: join(check, check, check, end), err: zk.ErrAPIError, index: -1},
		{name: "no end", answer: join(check, check), err: zk.ErrAPIError, index: -1},
		{name: "cut", answer: join(check, check[:5]), err: zk.ErrAPIError, index: -1},
		{name: "not done, for no reason", answer: join(refused(0), refused(0), end), err: zk.ErrAPIError, index: -1},
		{name: "one of them not done, for no reason", answer: join(check, refused(0), end), err: zk.ErrAPIError, index: -1},
		{name: "something else was done", answer: join(check, set, make([]byte, statBytes), end), err: zk.ErrAPIError, index: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			results, err := resultsIn(c.answer, checks)
			if !errors.Is(err, c.err) || err == nil != (len(results) == len(checks)) {
				t.Errorf("%d results, %v", len(results), err)
			}
			index := -1
			if refusal, is := errors.AsType[*recipes.Refusal](err); is {
				index = refusal.Index
			}
			if want := c.index; c.err != nil && index != want {
				t.Errorf("refused is operation %d, not %d", index, want)
			}
		})
	}
}

// Data that are empty are not the same as none, to those who read them.
func TestOperationsAreAskedForAsTheLibraryHasThem(t *testing.T) {
	t.Parallel()
	acl := zk.WorldACL(zk.PermAll)
	aclBytes := "\x00\x00\x00\x01\x00\x00\x00\x1f\x00\x00\x00\x05world\x00\x00\x00\x06anyone"
	for _, c := range []struct {
		name  string
		asked operation
		body  string
	}{
		{"a check", checkOf("/a", 7), "\x00\x00\x00\x02/a\x00\x00\x00\x07"},
		{"a deletion", operation{kind: opDelete, path: "/a", number: anyVersion}, "\x00\x00\x00\x02/a\xff\xff\xff\xff"},
		{"a change", operation{kind: opSetData, path: "/a", data: []byte{}, number: 1}, "\x00\x00\x00\x02/a\x00\x00\x00\x00\x00\x00\x00\x01"},
		{
			"a creation",
			operation{kind: opCreate, path: "/a", data: []byte("d"), acl: acl, number: zk.FlagEphemeral},
			"\x00\x00\x00\x02/a\x00\x00\x00\x01d" + aclBytes + "\x00\x00\x00\x01",
		},
		{
			"a container without data",
			operation{kind: opCreateContainer, path: "/a", acl: acl, number: zk.FlagContainer},
			"\x00\x00\x00\x02/a\xff\xff\xff\xff" + aclBytes + "\x00\x00\x00\x04",
		},
	} {
		if body := string(c.asked.request().body); body != c.body {
			t.Errorf("%s is %q, not %q", c.name, body, c.body)
		}
	}
}
