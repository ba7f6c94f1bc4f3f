package recipes

import (
	"context"
	"errors"
	"path"
	"time"
)

// Errors of groups.
var (
	// ErrMemberExists means that the group has a member of this name already.
	ErrMemberExists = errors.New("the group has a member of this name already")
	// ErrReplaced means that another caller joined under the member's name and asked for its place.
	ErrReplaced = errors.New("another member has taken the place")
	// ErrRemoved means that the group was deleted, or the member removed by hand.
	ErrRemoved = errors.New("another program removed the member")
	// ErrNoMember means that the caller has no such member in the group.
	ErrNoMember = errors.New("no such member of this caller")
	// ErrNoGroup means that there is no such group.
	ErrNoGroup = errors.New("no such group")
	// ErrGroupNotEmpty means that the group has members.
	ErrGroupNotEmpty = errors.New("the group has members")
)

// Group is one group: a directory in which each member has an ephemeral node of its own name. This is the group recipe of
// ZooKeeper's manual, and what Curator's GroupMember does, so that its members and ours see each other. The directory
// is a container, which vanishes some time after its last member, unless Make has made it: then its data says so, since
// nothing else tells the two apart.
type Group struct {
	Path string // of the directory
}

// permanentMark is the data of a directory that Make has made.
var permanentMark = About{}.encode()

func isPermanent(directory Node) bool {
	_, ours := decodeMember(directory.Data)
	return ours
}

func (g Group) member(name string) string { return g.Path + "/" + name }

// Make has the group stay when it has no members. ErrGroupNotEmpty if it has members and was not made so: nothing can turn
// the directory that they are in into one that stays.
func (g Group) Make(ctx context.Context, store Store) error {
	var failure error
	for range maxAttempts {
		made, err := g.makeOnce(ctx, store)
		switch {
		case made:
			return nil
		case errors.Is(err, ErrOutcomeUnknown):
			if err := store.CatchUp(ctx); err != nil {
				return errors.Join(ErrOutcomeUnknown, err)
			}
		case errors.Is(err, ErrNotEmpty):
			return ErrGroupNotEmpty
		case err != nil && !isMoved(err):
			return err
		}
		failure = err
	}
	return failure
}

// isMoved says whether a write was refused since something else had been written just before.
func isMoved(err error) bool {
	return errors.Is(err, ErrNoNode) || errors.Is(err, ErrExists) || errors.Is(err, ErrBadVersion)
}

// makeOnce takes one step towards a directory that stays, and says whether it is there.
func (g Group) makeOnce(ctx context.Context, store Store) (made bool, _ error) {
	create := Create(g.Path, permanentMark)
	_, err := store.Commit(ctx, create)
	switch {
	case errors.Is(err, ErrNoNode):
		return false, store.MakeDirectory(ctx, path.Dir(g.Path))
	case !errors.Is(err, ErrExists):
		return err == nil, err
	}
	directory, err := g.directory(ctx, store)
	if err != nil || isPermanent(directory) {
		return err == nil, err
	}
	_, err = store.Commit(ctx, Delete(g.Path, directory.Version), create)
	return err == nil, err
}

// directory reads the group's directory as it is, not as it was.
func (g Group) directory(ctx context.Context, store Store) (Node, error) {
	if err := store.CatchUp(ctx); err != nil {
		return Node{}, err
	}
	return store.Get(ctx, g.Path)
}

// Delete removes the group. ErrGroupNotEmpty if it has members, ErrNoGroup if it is not there.
func (g Group) Delete(ctx context.Context, store Store) (err error) {
	for range maxAttempts {
		directory, failure := g.directory(ctx, store)
		if failure == nil {
			_, failure = store.Commit(ctx, Delete(g.Path, directory.Version))
		}
		switch err = failure; {
		case errors.Is(err, ErrNoNode):
			return ErrNoGroup
		case errors.Is(err, ErrNotEmpty):
			return ErrGroupNotEmpty
		case !errors.Is(err, ErrBadVersion):
			return err
		}
	}
	return err
}

// Dissolve removes the group with its members, as Evict does each, and says how many had to be removed from outside.
// ErrGroupNotEmpty if others keep joining, or if there is something in the directory that is no member. The ensemble itself may delete the
// directory once the last member has gone.
func (g Group) Dissolve(ctx context.Context, store Store, order Eviction) (forced int, err error) {
	for attempt := range maxAttempts {
		if err = g.Delete(ctx, store); attempt > 0 && errors.Is(err, ErrNoGroup) {
			return forced, nil
		}
		if !errors.Is(err, ErrGroupNotEmpty) {
			return forced, err
		}
		view, failure := g.View(ctx, store)
		if failure != nil {
			return forced, failure
		}
		more, failure := g.evictAll(ctx, store, view.Members, order)
		forced += more
		if failure != nil {
			return forced, failure
		}
	}
	return forced, err
}

// evictAll asks all of them first, so that they go together.
func (g Group) evictAll(ctx context.Context, store Store, members []Member, order Eviction) (forced int, _ error) {
	longest := time.Duration(0)
	for _, member := range members {
		longest = max(longest, order.with(member.Timeout))
	}
	until := make([]evictionDeadline, len(members))
	for i, member := range members {
		until[i].after = longest
		mark, _, err := g.ask(ctx, store, member.Name, member.Incarnation, order)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return 0, err
		}
		until[i].stands(mark)
	}
	for i, member := range members {
		removed, err := g.evict(ctx, store, member.Name, member.Incarnation, order, &until[i])
		if err != nil {
			return forced, err
		}
		if removed {
			forced++
		}
	}
	return forced, nil
}

// Size is how many nodes the group has and whether it stays without members. ErrNoNode if it is not there.
func (g Group) Size(ctx context.Context, tree Tree) (members int, permanent bool, err error) {
	directory, err := tree.Get(ctx, g.Path)
	return int(directory.Children), isPermanent(directory), err
}
