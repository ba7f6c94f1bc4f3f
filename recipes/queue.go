package recipes

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrQueueFull means that a queue has as many items as it may have.
var ErrQueueFull = errors.New("queue full")

// MaxItems bounds how many items a queue has: their directory is listed as a whole.
const MaxItems = 10000

// What the names of a queue's other directories have more than that of the one with its items.
const (
	TakenSuffix  = ".taken"  // for each item that is taken a node of its name (Curator's lock path), and one for each delivery of ours
	TakersSuffix = ".takers" // the queue of those who wait for items
)

// Queue is a queue of items, of which each is delivered to one caller at a time, until one says that it is done. It is Curator's
// DistributedQueue with a lock path, and its DistributedPriorityQueue and DistributedDelayQueue. An item is a node that stays; its taker
// makes an ephemeral node of the same name in another directory, deletes the item once it is done, and then that node.
//
// Those of ours who wait for items stand in the queue of a mutex, at TakersSuffix, and the first alone looks for an item, so that one that
// comes wakes one of them. Besides, each delivery of ours has a node whose name is never used again, made after the item was taken and
// deleted before it is given back: that is the delivery's place, which bears its token and guards writes.
//
// A delivery sets the item's data to what they are, so that their version says how often it was delivered. An item that was delivered twice and
// is there still rests before the next time, and others go before it.
type Queue struct {
	Path  string // of the directory of items
	Rests *Rests // of its sidecar
}

func (q Queue) takers() Lock             { return Lock{Path: q.Path + TakersSuffix} }
func (q Queue) deliveries() Lock         { return Lock{Path: q.Path + TakenSuffix, permits: true} }
func (q Queue) item(name string) string  { return q.Path + "/" + name }
func (q Queue) taken(name string) string { return q.Path + TakenSuffix + "/" + name }

// An Order is where in its queue an item stands: smaller priorities come first; of those that are equal, what is due sooner; then what was put
// sooner. An item has one of both at most, as Curator has it.
type Order struct {
	Priority int32
	Ranked   bool      // it has a priority, maybe 0: Curator's consumers take those without one before all others
	Due      time.Time // not delivered before, by the clock of the caller that takes it; zero for at once
}

// prefix is how the names of items begin that stand there.
func (o Order) prefix() string {
	switch {
	case !o.Due.IsZero():
		return fmt.Sprintf("queue-|%08X|", o.Due.UnixMilli()) //nolint:forbidigo // as Curator's consumers read it
	case o.Priority < 0:
		return fmt.Sprintf("queue-0%08X", uint32(o.Priority))
	case o.Priority > 0 || o.Ranked:
		return fmt.Sprintf("queue-1%08X", o.Priority)
	}
	return "queue-"
}

// itemName is how an item is called: nothing, a priority, or what it is due at or its id in Curator's DistributedIdQueue; then its number.
var itemName = regexp.MustCompile(`^queue-(?:([01])([0-9A-F]{8})|\|(.*)\|)?(\d{10}|-\d{9,10})$`)

// An item is one as its node's name tells it.
type item struct {
	name     string
	priority int32
	due      int64 // in milliseconds of Unix time
	number   int32
}

// parseItem reads the name of a queue's child. Anybody may have made it: ok is false for whatever is no item that we know.
func parseItem(name string) (of item, ok bool) {
	found := itemName.FindStringSubmatch(name)
	if found == nil {
		return item{}, false
	}
	of.name = name
	if of.number, ok = parseSequence(found[4]); !ok {
		return item{}, false
	}
	if found[2] != "" {
		priority, _ := strconv.ParseUint(found[2], 16, 32)
		of.priority = int32(uint32(priority))
		return of, of.priority < 0 == (found[1] == "0")
	}
	if due, err := strconv.ParseInt(found[3], 16, 64); err == nil { // else it is an id
		of.due = due
	}
	return of, true
}

// compareItems is the order of items. Numbers may have wrapped around.
func compareItems(a, b item) int {
	earlier := cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.due, b.due), cmp.Compare(a.number-b.number, 0))
	return cmp.Or(earlier, strings.Compare(a.name, b.name))
}

// readItems picks the items out of a directory's children, and sorts them.
func readItems(names []string) (items []item) {
	for _, name := range names {
		if of, ok := parseItem(name); ok {
			items = append(items, of)
		}
	}
	slices.SortFunc(items, compareItems)
	return items
}

// Put adds an item, unless there are that many or more. Those who put items at the same moment may pass that number by as many as they
// are. ErrOutcomeUnknown if the reply was lost: the item may be there, or come yet.
func (q Queue) Put(ctx context.Context, store Store, value []byte, order Order, most int) error {
	var failure error
	for range maxAttempts {
		if err := q.admit(ctx, store, most); err != nil {
			return err
		}
		_, failure = store.Commit(ctx, CreateNumbered(q.item(order.prefix()), encodeItem(value)))
		if !errors.Is(failure, ErrNoNode) {
			return failure
		}
		if err := q.make(ctx, store); err != nil {
			return err
		}
	}
	return failure
}

// make makes the directories of items and of those that are taken. They stay, as Curator's do, whose consumers hear of nothing more, and
// whose producers lose items, once the ensemble has removed a container that was empty for a while.
func (q Queue) make(ctx context.Context, store Store) error {
	if err := store.MakeDirectory(ctx, path.Dir(q.Path)); err != nil {
		return err
	}
	for _, directory := range []string{q.Path + TakenSuffix, q.Path} {
		_, err := store.Commit(ctx, Create(directory, nil))
		if err != nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrOutcomeUnknown) {
			return err
		}
	}
	return nil
}

// admit refuses one item more. That the reader is late is no reason.
func (q Queue) admit(ctx context.Context, store Store, most int) error {
	for _, late := range []bool{true, false} {
		if !late {
			if err := store.CatchUp(ctx); err != nil {
				return err
			}
		}
		if count, err := childrenOf(ctx, store, q.Path); err != nil || count < most {
			return err
		}
	}
	return ErrQueueFull
}

// childrenOf counts a node's children; 0 if it is missing.
func childrenOf(ctx context.Context, tree Tree, directory string) (int, error) {
	node, err := tree.Get(ctx, directory)
	if err == nil && node.Children < 0 {
		var names []string
		names, err = tree.Children(ctx, directory)
		node.Children = int32(len(names))
	}
	if errors.Is(err, ErrNoNode) {
		return 0, nil
	}
	return int(node.Children), err
}

// QueueState is how many items a queue has.
type QueueState struct {
	Items   int
	Taken   int // of these
	Delayed int // of these: not due yet
}

// State counts the items. What is not there has none.
func (q Queue) State(ctx context.Context, tree Tree) (state QueueState, _ error) {
	names, err := childrenNamed(tree.Children(ctx, q.Path))
	if err != nil {
		return state, err
	}
	taken, err := childrenNamed(tree.Children(ctx, q.Path+TakenSuffix))
	others := setOf(taken)
	for _, of := range readItems(names) {
		state.Items++
		switch {
		case others[of.name]:
			state.Taken++
		case of.due > time.Now().UnixMilli(), q.Rests.until(q.item(of.name)).After(time.Now()): //nolint:forbidigo // as Curator's consumers do
			state.Delayed++
		}
	}
	return state, err
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// childrenNamed are a list's names; none of a node that is missing.
func childrenNamed(names []string, err error) ([]string, error) {
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// IsQueue says whether a directory of this name holds items, and not what belongs to those of another.
func IsQueue(name string) bool {
	return !strings.HasSuffix(name, TakenSuffix) && !strings.HasSuffix(name, TakersSuffix)
}

// itemForm is how Curator's ItemSerializer begins; then comes 1, the length and the bytes of each value, and 2.
const itemForm = 0x00010001

func encodeItem(value []byte) []byte {
	data := append(binary.BigEndian.AppendUint32(nil, itemForm), 1)
	data = binary.BigEndian.AppendUint32(data, uint32(len(value)))
	return append(append(data, value...), 2)
}

// decodeItem is what an item holds: one value, or several if it was put by Curator's putMulti. Data in another form are a value as they are.
func decodeItem(data []byte) (values [][]byte) {
	rest := data
	if len(rest) < 5 || binary.BigEndian.Uint32(rest) != itemForm {
		return [][]byte{data}
	}
	for rest = rest[4:]; len(rest) >= 5 && rest[0] == 1; {
		length := binary.BigEndian.Uint32(rest[1:])
		if rest = rest[5:]; uint64(length) > uint64(len(rest)) {
			return [][]byte{data}
		}
		values, rest = append(values, rest[:length]), rest[length:]
	}
	if len(rest) == 0 || rest[0] != 2 {
		return [][]byte{data}
	}
	return values
}
