package zookeeper

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// What the library cannot name, servers answer with these codes.
func TestEachCodeThatAServerCanSendSaysWhatBecameOfTheRequest(t *testing.T) {
	for code, want := range map[int32]error{
		-119: recipes.ErrOutcomeUnknown, // NOTREADONLY
		-120: recipes.ErrLocalSession,   // EPHEMERALONLOCALSESSION
		-124: recipes.ErrAuthDemanded,   // SESSIONCLOSEDREQUIRESASLAUTH
		-125: recipes.ErrQuota,          // QUOTAEXCEEDED
		-127: errThrottled,              // THROTTLEDOP
		-121: errRefused,                // NOWATCHER, in answer to nothing that sidecars ask
	} {
		wire := binary.BigEndian.AppendUint32(nil, uint32(code))
		nameable(wire)
		err := translated(libraryError(int32(binary.BigEndian.Uint32(wire))))
		if !errors.Is(err, want) || isCommitted(err) {
			t.Errorf("%d: %v, not %v; it counts as committed: %t", code, err, want, isCommitted(err))
		}
	}
	if err := translated(zk.ErrAuthFailed); !errors.Is(err, recipes.ErrAuthDemanded) {
		t.Errorf("to the library: %v", err)
	}
}
