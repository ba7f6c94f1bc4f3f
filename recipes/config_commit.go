package recipes

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Action is what an Operation does.
type Action int

// The actions.
const (
	ActionPut    Action = iota + 1 // write the value
	ActionDelete                   // delete the key
	ActionCheck                    // see that the key meets the precondition
)

// An Operation is one part of a Config.Commit.
type Operation struct {
	Action  Action
	Key     string
	Value   []byte // of a put
	Require Precondition
}

// A Precondition is what must be true of a key. The zero Precondition demands nothing.
type Precondition struct {
	Demand  Demand
	Version int32 // with DemandVersion
}

// Demand is a kind of Precondition.
type Demand int

// The demands.
const (
	DemandNothing Demand = iota
	DemandVersion        // there is such a key, with this version
	DemandMissing        // there is no such key
	DemandExists         // there is such a key
)

// A Failure is why a commit was not carried out: an operation that could not be.
type Failure struct {
	Operation int   // counted from 0
	Err       error // ErrNoKey, ErrPrecondition or ErrKeyHasChildren
	Key       string
	Exists    bool  // whether there is such a key
	Version   int32 // of the key, if there is one
}

func (f *Failure) Error() string {
	return fmt.Sprintf("operation %d, key %s: %v", f.Operation, f.Key, f.Err)
}
func (f *Failure) Unwrap() error { return f.Err }

// Put writes a key, without an index of operations to think of. It returns the entry without its value. Errors as of Commit.
func (c Config) Put(ctx context.Context, store Store, key string, value []byte, require Precondition) (Entry, error) {
	entries, err := c.Commit(ctx, store, Operation{Action: ActionPut, Key: key, Value: value, Require: require})
	if err != nil {
		return Entry{}, err
	}
	return entries[0], nil
}

// Delete deletes a key. Errors as of Commit.
func (c Config) Delete(ctx context.Context, store Store, key string, require Precondition) error {
	_, err := c.Commit(ctx, store, Operation{Action: ActionDelete, Key: key, Require: require})
	return err
}

// Commit carries out all the operations in one transaction, or none of them. Each has a key of its own, and what lies below
// a key that is deleted is deleted too. It returns what each put has written, without the value, at the place of the put.
// A *Failure tells which operation cannot be done, at some moment of the call. With ErrUnreachable nothing was done; with
// ErrOutcomeUnknown all may have been done, or may still be, until another caller or program writes the keys.
func (c Config) Commit(ctx context.Context, store Store, operations ...Operation) ([]Entry, error) {
	steps := c.steps(operations)
	for round := 0; ; round++ {
		if round > 0 { // what was seen was out of date, or has changed
			if err := store.CatchUp(ctx); err != nil {
				return nil, unsent(err)
			}
		}
		changes, err := steps.plan(ctx, store)
		if _, failed := errors.AsType[*Failure](err); failed && round == 0 {
			continue // perhaps only because the tree shows it late
		}
		if err != nil {
			return nil, unsent(err)
		}
		nodes, err := store.Commit(ctx, changes...)
		if err == nil {
			return steps.entries(nodes), nil
		}
		if err := steps.learn(ctx, store, changes, err); err != nil {
			return nil, err
		}
	}
}

// unsent makes of an error, met before anything was sent, one that says so.
func unsent(err error) error {
	if errors.Is(err, ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %v", ErrUnreachable, err) //nolint:errorlint // what is unknown has no meaning for the caller
	}
	return err
}

// A step is an operation under way.
type step struct {
	Operation

	index int // of the operation
	path  string
	first int // its first change in the transaction
	set   int // the change that is the put's Set

	pinned  bool // the pin was seen
	crowded bool // something was seen to lie in the key's node
	beaten  int  // how often others were faster
}

// steps are the operations of a commit, in the order in which they are done.
type steps []*step

// steps puts deletions first, deepest first, and then shorter keys before longer ones, so that no operation is in the way of
// another one.
func (c Config) steps(operations []Operation) steps {
	all := make(steps, len(operations))
	for i, operation := range operations {
		all[i] = &step{Operation: operation, index: i, path: c.path(operation.Key)}
	}
	slices.SortStableFunc(all, func(a, b *step) int {
		if deletes := a.Action == ActionDelete; deletes == (b.Action == ActionDelete) {
			if deletes {
				a, b = b, a
			}
			return strings.Count(a.Key, "/") - strings.Count(b.Key, "/")
		} else if deletes {
			return -1
		}
		return 1
	})
	return all
}

// plan looks at the keys and makes the transaction.
func (e steps) plan(ctx context.Context, tree Tree) ([]Change, error) {
	states := make([]nodeState, len(e))
	err := EachOf(len(e), func(i int) (err error) {
		states[i], err = readState(ctx, tree, e[i].path)
		return err
	})
	if err != nil {
		return nil, err
	}
	var changes []Change
	deleted := map[string]bool{}
	for i, step := range e {
		step.first = len(changes)
		planned, err := step.plan(ctx, tree, states[i], deleted)
		if err != nil {
			return nil, err
		}
		changes = append(changes, planned...)
		deleted[step.path] = step.Action == ActionDelete
	}
	return changes, nil
}

// learn makes the next plan a better one, if the transaction was refused for something that may be different by then.
func (e steps) learn(ctx context.Context, store Store, changes []Change, err error) error {
	refusal, refused := errors.AsType[*Refusal](err)
	if !refused {
		return err
	}
	change := changes[refusal.Index]
	last := e[0]
	for _, step := range e {
		if step.first <= refusal.Index {
			last = step
		}
	}
	missing, ofPin := errors.Is(err, ErrNoNode), path.Base(change.Path) == pin
	switch {
	case missing && change.Kind == KindCreate:
		return unsent(store.MakeDirectory(ctx, path.Dir(change.Path)))
	case missing && ofPin:
		last.pinned = false
	case missing:
	case errors.Is(err, ErrExists):
		last.pinned = ofPin
	case errors.Is(err, ErrNotEmpty):
		last.crowded = true
	case errors.Is(err, ErrBadVersion):
		last.beaten++
	default:
		return err
	}
	return nil
}

// entries are what the puts have written.
func (e steps) entries(nodes []Node) []Entry {
	entries := make([]Entry, len(e))
	for _, step := range e {
		if step.Action == ActionPut {
			entries[step.index] = entryOf(step.Key, nodes[step.set])
		}
	}
	return entries
}
