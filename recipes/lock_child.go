package recipes

import (
	"regexp"
	"slices"
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
	claims   bool  // it is a claim: see Claims
	numbered bool  // it bears a number, or waits for a permit that will: see Numbering
	number   int   // of a permit, then
}

// markers tells contenders apart by what stands between the unique part of the name and the sequence number: Curator's
// mutex, which go-zookeeper and others share (their own part may differ: nothing is asked of it); its LeaderLatch; its read/write lock;
// kazoo's lock, which is also its writer; and kazoo's reader. Contenders of ZooKeeper's manual are told apart by textbookMode.
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

// permitMarker is what Curator puts into the name of a permit.
const permitMarker = "-lease-"

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
func parseChild(name string) (contender child, ok bool) { return parseNumbered(name, contenderMode) }

// parsePermit reads the name of a child of a semaphore's permits, as parseChild does. Permits hold together, as readers do.
func parsePermit(name string) (permit child, ok bool) {
	return parseNumbered(name, markedMode(permitMarkers))
}

// IsContender says whether a node of this name is a place in the queue of a lock.
func IsContender(name string) bool {
	_, is := parseChild(name)
	return is
}

func parseNumbered(name string, modeOf func(prefix string) (Mode, bool)) (contender child, ok bool) {
	for _, width := range []int{10, 11} { // the server writes %010d, so only large negative numbers take 11
		split := len(name) - width
		if split < 0 {
			break
		}
		sequence, ok := parseSequence(name[split:])
		if !ok || width == 11 && sequence >= 0 {
			continue
		}
		if mode, ok := modeOf(name[:split]); ok {
			number, bears := numberIn(name[:split])
			return child{
				name: name, mode: mode, sequence: sequence, delayed: isMarked(name[:split], delayMark), claims: isMarked(name[:split], claimMark),
				numbered: bears || isMarked(name[:split], numberMark), number: number,
			}, true
		}
	}
	return child{}, false
}

// isMarked says whether a contender whose name begins so has a mark of ours: see MaxLockDelay and Claims.
func isMarked(prefix, mark string) bool {
	return slices.ContainsFunc(markers, func(m marker) bool { return strings.HasSuffix(prefix, mark+"-"+m.text) })
}

// numberIn is the number of a permit whose name begins so.
func numberIn(prefix string) (number int, bears bool) {
	rest, isPermit := strings.CutSuffix(prefix, permitMarker)
	if _, text, ok := strings.Cut(rest, numberMark); ok && isPermit {
		return parseNumber(text)
	}
	return 0, false
}

// markedMode is the mode of a contender whose name begins so, according to markers.
func markedMode(markers []marker) func(prefix string) (Mode, bool) {
	return func(prefix string) (Mode, bool) {
		for _, m := range markers {
			if strings.HasSuffix(prefix, m.text) {
				return m.mode, true
			}
		}
		return Exclusive, false
	}
}

// textbook is how names of contenders begin that follow ZooKeeper's manual, where Curator's begin with a uuid and end with a marker: the
// manual's readers and writers, maybe behind something unique; and mutexes that tell their session, in decimal or hexadecimal digits, as the
// WriteLock does that comes with ZooKeeper, in Java and in C.
var textbook = regexp.MustCompile(`(?:^|-)(read|write)-$|^(?:lock|x)-(?:-?[0-9]+|(?:0x)?[0-9a-f]{1,16})-$`)

// contenderMode is the mode of a contender whose name begins so.
func contenderMode(prefix string) (Mode, bool) {
	if mode, ok := markedMode(markers)(prefix); ok {
		return mode, true
	}
	found := textbook.FindStringSubmatch(prefix)
	if found == nil {
		return Exclusive, false
	}
	return map[string]Mode{"read": Read, "write": Write}[found[1]], true
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
