package embedded

import (
	"math"
	"time"
)

// A kind says what a node's life depends on. The number stored as its owner tells it.
type kind int

const (
	lasting   kind = iota // until it is deleted
	ephemeral             // until its session ends
	container             // until some time after its last child has gone
	expiring              // until it has had no change and no child for some time
)

const (
	containerOwner = math.MinInt64
	expiringMark   = -1 << 56  // 0xff in the first byte
	longestTTL     = 1<<40 - 1 // milliseconds
)

func kindOf(owner int64) kind {
	switch {
	case owner == 0:
		return lasting
	case owner == containerOwner:
		return container
	case owner&expiringMark == expiringMark:
		return expiring
	}
	return ephemeral
}

// timeToLive is how long an expiring node stays.
func timeToLive(owner int64) time.Duration {
	return time.Duration(owner&longestTTL) * time.Millisecond
}

// A Mode is how a node is made; the numbers are those of the wire protocol.
type Mode int32

// The modes.
const (
	Persistent           Mode = 0
	Ephemeral            Mode = 1
	PersistentSequential Mode = 2
	EphemeralSequential  Mode = 3
	Container            Mode = 4
	TTL                  Mode = 5
	TTLSequential        Mode = 6
)

// sequential modes add the parent's counter to the name.
func (m Mode) sequential() bool {
	return m == PersistentSequential || m == EphemeralSequential || m == TTLSequential
}

func (m Mode) known() bool { return Persistent <= m && m <= TTLSequential }

func (m Mode) expiring() bool { return m == TTL || m == TTLSequential }

// kind is what a plain create makes. A container or a TTL node needs an operation of its own.
func (m Mode) kind() kind {
	if m == Ephemeral || m == EphemeralSequential {
		return ephemeral
	}
	return lasting
}
