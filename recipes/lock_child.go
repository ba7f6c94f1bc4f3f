package recipes

import (
	"strconv"
	"strings"
)

// Mode is how a lock is held. The zero Mode is Exclusive.
type Mode int

// The modes. A lock is used either as a mutex (Exclusive) or as a read/write lock (Read and Write).
const (
	Exclusive Mode = iota // one holder at a time
	Read                  // any number of readers together, while no writer holds
	Write                 // alone
)

// A child is a contender as its node's name tells it.
type child struct {
	name     string
	mode     Mode
	sequence int32
	czxid    int64 // 0 unless the order was taken from it
	delayed  bool  // its hold has a delay
}

// markers tells contenders apart by what stands between the unique part of the name and the sequence number: Curator's
// mutex, which go-zookeeper and others share (their own part may differ: nothing is asked of it); its LeaderLatch; its read/write lock;
// kazoo's lock, which is also its writer; and kazoo's reader.
var markers = []marker{
	{"lock-", Exclusive},
	{"latch-", Exclusive},
	{"__WRIT__", Write},
	{"__READ__", Read},
	{"__lock__", Exclusive},
	{"__rlock__", Read},
}

// permitMarkers tells a semaphore's permits from what else is in their directory.
var permitMarkers = []marker{{"lease-", Read}}

type marker struct {
	text string
	mode Mode
}

// marker is what Curator puts into the name of a contender with this mode.
func (m Mode) marker() string {
	switch m {
	case Read:
		return "-__READ__"
	case Write:
		return "-__WRIT__"
	default:
		return "-lock-"
	}
}

// String names the mode.
func (m Mode) String() string {
	switch m {
	case Read:
		return "read"
	case Write:
		return "write"
	default:
		return "exclusive"
	}
}

// shared says whether the mode is one of a read/write lock.
func (m Mode) shared() bool { return m != Exclusive }

// waitsFor says whether a contender ahead keeps one with mode m from holding.
func (m Mode) waitsFor(ahead Mode) bool {
	switch m {
	case Read:
		return ahead == Write
	case Write:
		return ahead.shared()
	default:
		return ahead == Exclusive
	}
}

// parseChild reads the name of a lock directory's child. Anybody may have made it: ok is false for whatever is no
// contender that we know.
func parseChild(name string) (contender child, ok bool) { return parseMarked(name, markers) }

// parsePermit reads the name of a child of a semaphore's permits, as parseChild does. Permits hold together, as readers do.
func parsePermit(name string) (permit child, ok bool) { return parseMarked(name, permitMarkers) }

func parseMarked(name string, markers []marker) (contender child, ok bool) {
	for _, width := range []int{10, 11} { // the server writes %010d, so only large negative numbers take 11
		split := len(name) - width
		if split < 0 {
			break
		}
		sequence, ok := parseSequence(name[split:])
		if !ok || width == 11 && sequence >= 0 {
			continue
		}
		for _, m := range markers {
			if own, ok := strings.CutSuffix(name[:split], m.text); ok {
				delayed := strings.HasSuffix(own, delayMark+"-")
				return child{name: name, mode: m.mode, sequence: sequence, delayed: delayed}, true
			}
		}
	}
	return child{}, false
}

// parseSequence reads the number that the server appended.
func parseSequence(text string) (int32, bool) {
	for i, c := range []byte(text) {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return 0, false
		}
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if text[0] == '-' && (number == 0 || len(text) > 10 && number > -1e9) { // not as the server writes it
		return 0, false
	}
	return int32(number), err == nil
}
