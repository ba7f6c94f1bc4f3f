package recipes

import (
	"cmp"
	"context"
	"errors"
	"path"
	"strings"
)

// Errors of the configuration.
var (
	// ErrNoKey means that there is no such key.
	ErrNoKey = errors.New("no such key")
	// ErrPrecondition means that the key does not meet the precondition.
	ErrPrecondition = errors.New("the key does not meet the precondition")
	// ErrKeyHasChildren means that other keys lie below the key.
	ErrKeyHasChildren = errors.New("other keys lie below the key")
)

// Config is a tree of keys, each of them a node below one directory whose data is the value. A node that is Bare is no
// key: such are the containers that keys lie in.
//
// A key that is put where there is a container already, since keys lie below it, stands on a node that the ensemble
// would remove with the last of them. So it gets a child of its own, the pin, which keeps it; the pin's name is no
// segment of a key, so that it is none. Containers have version 0, and a key that was put here never has: whatever demands the
// version it has seen of a key does nothing to a container that has taken the key's place.
type Config struct {
	Root string // the directory's path
}

// pin is the name of the child that keeps a key's node from vanishing.
const pin = "%key"

// An Entry is a key with its value.
type Entry struct {
	Key      string
	Value    []byte // not to be modified; nil in what Commit returns
	Version  int32
	Revision int64 // the transaction that wrote the value
	Created  int64 // the transaction that made the key
}

func (c Config) path(key string) string { return path.Join(c.Root, key) }

func entryOf(key string, node Node) Entry {
	return Entry{Key: key, Value: node.Data, Version: node.Version, Revision: node.Mzxid, Created: node.Czxid}
}

// Get reads a key. ErrNoKey if there is none. It is as new as the tree: what is newer takes a CatchUp before.
func (c Config) Get(ctx context.Context, tree Tree, key string) (Entry, error) {
	node, err := tree.Get(ctx, c.path(key))
	if errors.Is(err, ErrNoNode) || err == nil && node.Bare {
		return Entry{}, ErrNoKey
	}
	return entryOf(key, node), err
}

// CompareKeys orders keys segment by segment, as if `/` came before every other character. It is the order in which a
// walk that goes down before it goes on meets them.
func CompareKeys(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		switch {
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		}
		return cmp.Compare(a[i], b[i])
	}
	return len(a) - len(b)
}

// liesBelow says whether a key lies below another one, which may be empty: then all do.
func liesBelow(key, other string) bool {
	return other == "" || len(key) > len(other) && key[len(other)] == '/' && strings.HasPrefix(key, other)
}
