package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// mostContenders bounds how many contenders of one lock are looked at one by one.
const mostContenders = 1000

// root looks at who may write below the root.
func (e *examination) root(ctx context.Context) error {
	for _, path := range slices.Compact([]string{e.Root, e.LockRoot}) {
		looked, err := e.ensemble.Inspect(ctx, path)
		switch {
		case errors.Is(err, recipes.ErrNoNode):
			e.findf(Note, path, "", "does not exist yet: a sidecar creates it when it starts")
		case errors.Is(err, recipes.ErrDenied):
			e.findf(Problem, path, "give the sidecar credentials that can read it", "cannot be read")
		case err != nil:
			return err
		default:
			e.permissions(path, looked)
		}
	}
	return nil
}

func (e *examination) permissions(node string, looked zookeeper.Inspection) {
	for _, permission := range looked.Permissions {
		if permission.Scheme == "world" && strings.ContainsAny(permission.May, "cdwa") && e.Credentials {
			e.findf(Warning, node, "set its ACL to the sidecars' identity",
				"every client may change it (world:%s:%s), although the sidecar has credentials",
				permission.ID, permission.May)
		}
	}
}

// locks looks at the directories of locks, and a second time at those that are empty.
func (e *examination) locks(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		var err error
		if paths, err = e.directories(ctx, e.LockRoot); err != nil {
			return err
		}
	}
	empty := map[string]zookeeper.Inspection{}
	for _, path := range paths {
		looked, err := e.lock(ctx, path)
		if errors.Is(err, recipes.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		if looked.Children == 0 {
			empty[path] = looked
		}
	}
	return e.leftovers(ctx, empty)
}

// directories are the nodes below path that could be a lock's, with path's own depth not bounded: names may be nested.
func (e *examination) directories(ctx context.Context, below string) (found []string, _ error) {
	children, err := e.ensemble.Children(ctx, below)
	if errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrDirectoryTooLarge) { // see names
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		if familyOf(child) != "" {
			continue
		}
		node := path.Join(below, child)
		if looked, err := e.ensemble.Inspect(ctx, node); err == nil && looked.Owner != 0 {
			continue // ephemeral: nothing lies in it
		}
		deeper, err := e.directories(ctx, node)
		if err != nil {
			return nil, err
		}
		found = append(append(found, node), deeper...)
	}
	slices.Sort(found)
	return found, nil
}

// lock looks at one lock's directory and at its contenders.
func (e *examination) lock(ctx context.Context, directory string) (zookeeper.Inspection, error) {
	looked, err := e.ensemble.Inspect(ctx, directory)
	if errors.Is(err, recipes.ErrDenied) {
		e.findf(Problem, directory, "give all clients of the lock one identity, or open its ACL", "cannot be read")
		return looked, nil
	}
	if err != nil {
		return looked, err
	}
	children, err := e.ensemble.Children(ctx, directory)
	if err != nil {
		return looked, err
	}
	e.permissions(directory, looked)
	e.counter(directory, looked.Counter, children)
	families := sorted(children)
	e.mixed(directory, families)
	if len(families) > 1 && len(families[stranger]) > 0 {
		e.strangers(directory, families[stranger])
	}
	delete(families, stranger)
	for _, names := range families {
		if err := e.contenders(ctx, directory, names[:min(len(names), mostContenders)]); err != nil {
			return looked, err
		}
	}
	return looked, nil
}

// counter judges how much room is left in the 32 bits from which contenders get their numbers.
func (e *examination) counter(directory string, counter int32, children []string) {
	const advice = "delete the directory while the lock is unused: a new one counts from 0"
	switch room := math.MaxInt32 - counter; {
	case atTheEnd(children):
		e.findf(Problem, directory, advice,
			"its counter is exhausted: clients that order contenders by number, as Curator and kazoo do, order them wrongly")
	case room < 1<<28:
		e.findf(Warning, directory, advice, "its counter has room for %d more contenders", room)
	}
}

// atTheEnd says whether a contender has the last of the numbers, or one from beyond.
func atTheEnd(children []string) bool {
	return slices.ContainsFunc(children, func(child string) bool {
		_, digits := parse(child)
		return digits == "2147483647" || strings.HasPrefix(digits, "-")
	})
}

// mixed judges contenders of families that do not see each other.
func (e *examination) mixed(directory string, families map[family][]string) {
	var there []string
	for _, one := range known {
		if names := families[one.family]; len(names) > 0 {
			there = append(there, fmt.Sprintf("%d of %s", len(names), one.family))
		}
	}
	if len(there) > 1 {
		e.findf(Problem, directory,
			"use one kind of client for one lock; kazoo needs a subclass with _NODE_NAME = \"-lock-\" and _EXCLUDE_NAMES = [\"-lock-\"]",
			"contenders that ignore each other, so that several can hold the lock at the same time: %s", strings.Join(there, ", "))
	}
}

func (e *examination) strangers(directory string, names []string) {
	slices.Sort(names)
	e.findf(Warning, directory, "move them elsewhere",
		"children that are not contenders: %q. Curator counts them and waits for them, go-zookeeper refuses to lock; Sidekeeper ignores them",
		names[:min(len(names), 5)])
}

// contenders looks at each contender's owner.
func (e *examination) contenders(ctx context.Context, directory string, names []string) error {
	for _, name := range names {
		contender := path.Join(directory, name)
		looked, err := e.ensemble.Inspect(ctx, contender)
		switch {
		case errors.Is(err, recipes.ErrNoNode):
		case errors.Is(err, recipes.ErrDenied):
			e.findf(Problem, contender, "give all clients of the lock one identity, or open its ACL",
				"cannot be read: views show it without its owner, and no operator can break its hold")
		case err != nil:
			return err
		case looked.Owner == 0 && recipes.IsClaim(name):
			e.findf(Note, contender, "break it if its sidecars are gone, which end it when its time is over", "is a claim, which no session holds")
		case looked.Owner == 0:
			e.findf(Problem, contender, "delete it if no client uses it", "is not ephemeral: it blocks the lock until it is deleted")
		}
	}
	return nil
}

// leftovers looks again at directories that were empty. A container would have gone by then, so these stay for ever.
func (e *examination) leftovers(ctx context.Context, empty map[string]zookeeper.Inspection) error {
	if len(empty) == 0 {
		return nil
	}
	if e.RecheckAfter == 0 {
		e.findf(Note, e.LockRoot, "run again with --recheck-after 90s to find those that remain",
			"%d directories of locks are empty; containers vanish within about a minute", len(empty))
		return nil
	}
	timer := time.NewTimer(e.RecheckAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for path := range empty {
		before := empty[path]
		now, err := e.ensemble.Inspect(ctx, path)
		if err != nil || now.Czxid != before.Czxid || now.Counter != before.Counter || now.Children != 0 {
			continue
		}
		if directory, err := e.ensemble.Get(ctx, path); err == nil && recipes.IsKept(directory) {
			e.findf(Note, path, "delete it when the lock is used no more", "is empty, and remains since its lock was held with a delay")
			continue
		}
		e.findf(Warning, path, "delete it: its next user creates it as a container",
			"is empty and not a container, so that it remains forever")
	}
	return nil
}
