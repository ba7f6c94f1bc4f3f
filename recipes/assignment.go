package recipes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"
)

// Errors of sets of items.
var (
	// ErrNoAssignment means that there is no such set of items.
	ErrNoAssignment = errors.New("no such set of items")
	// ErrItemsAssigned means that an item would leave the set that a member has.
	ErrItemsAssigned = errors.New("a member has an item that would leave the set")
	// ErrAssignmentInUse means that a set has members.
	ErrAssignmentInUse = errors.New("the set has members")
)

// An ItemAssigned is ErrItemsAssigned, with the item and the member that has it.
type ItemAssigned struct{ Item, Member string }

func (i *ItemAssigned) Error() string {
	return fmt.Sprintf("%v: %s has %s", ErrItemsAssigned, i.Member, i.Item)
}
func (i *ItemAssigned) Unwrap() error { return ErrItemsAssigned }

const (
	// MaxSetItems bounds how many items a set has: the plan names each of them.
	MaxSetItems = 2000
	// capacityKey is where a member's metadata says how many items it takes.
	capacityKey = "capacity"
)

// Assignment is a set of items that its members share among themselves. Each item is a lock, of which this recipe knows nothing but the name.
//
// Which member shall have an item is advice. It stands in one node, the plan, that the sidecar of any member may write. None leads. A sidecar
// reads the plan, catches up, reads the items and the members, computes the next plan from the one that it has read, and sets the node by its
// version. So each plan rests on views that are younger than the plan before, and a reader that lags never undoes a newer plan. A set that is
// removed and made again may get a plan that is late. Then members queue at the wrong locks until the next look.
type Assignment struct {
	Path string // of the node that holds the items; plan and members lie in it
}

// Members are the group of those that share the items.
func (a Assignment) Members() Group { return Group{Path: a.Path + "/members"} }

func (a Assignment) planPath() string { return a.Path + "/plan" }

// Items are what a set consists of: names, or numbers from 0 below Count.
type Items struct {
	Names []string `json:"items,omitempty"`
	Count int      `json:"count,omitempty"`
}

// All are the names of the items, in order.
func (i Items) All() []string {
	if i.Count == 0 {
		return i.Names
	}
	all := make([]string, i.Count)
	for number := range all {
		all[number] = strconv.Itoa(number)
	}
	return all
}

// planForm is the data of a plan's node.
type planForm struct {
	Members map[string][]string `json:"members"` // the items of each, by its name
}

// A SetMember is a member of a set.
type SetMember struct {
	Member

	Capacity int      // how many items it takes at most
	Items    []string // that the plan gives it, in the order of the set
}

// An AssignmentView is a set as a tree shows it.
type AssignmentView struct {
	Items

	Epoch   int64       // tells plans apart, and grows with each; 0 without a plan
	Planned time.Time   // when the plan was written, by the clock of the ensemble's leader
	Members []SetMember // in the order of their names

	version int32               // of the items
	planned int32               // the version of the plan; −1 without one
	plan    map[string][]string // the items of each member, by its name
}

// Unassigned are the items that the plan gives to no member that is there.
func (v *AssignmentView) Unassigned() []string {
	given := map[string]bool{}
	for _, member := range v.Members {
		for _, item := range member.Items {
			given[item] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(v.All()), func(item string) bool { return given[item] })
}

// CapacityIn is what a member's metadata say of its capacity. A member that says nothing there takes what it gets.
func CapacityIn(metadata map[string]string) int {
	capacity, err := strconv.Atoi(metadata[capacityKey])
	if err != nil || capacity < 0 || capacity > MaxSetItems {
		return MaxSetItems
	}
	return capacity
}

// WithoutCapacity are a member's metadata without what they say of its capacity.
func WithoutCapacity(metadata map[string]string) map[string]string {
	metadata = maps.Clone(metadata)
	delete(metadata, capacityKey)
	return metadata
}

// WithCapacity adds a capacity to a member's metadata.
func WithCapacity(metadata map[string]string, capacity int) map[string]string {
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[capacityKey] = strconv.Itoa(capacity)
	return metadata
}

// Watch reads the set, and returns what to wait for before it is read again. ErrNoAssignment, ErrMalformedRecord.
func (a Assignment) Watch(ctx context.Context, tree Tree) (view AssignmentView, changes Changes, _ error) {
	plan, planned, err := a.watchPlan(ctx, tree)
	if err != nil {
		return view, nil, err
	}
	view, changed, err := a.watchItems(ctx, tree)
	if err != nil {
		return view, nil, err
	}
	group, changes, err := a.Members().WatchView(ctx, tree)
	if err != nil {
		return view, nil, err
	}
	view.planned = -1
	if plan.Czxid != 0 {
		view.Epoch, view.Planned, view.planned = plan.Mzxid, plan.Modified, plan.Version
		form := planForm{}
		if json.Unmarshal(plan.Data, &form) == nil { // what another program has written there is no advice
			view.plan = form.Members
		}
	}
	for _, member := range group.Members {
		view.Members = append(view.Members, SetMember{Member: member, Capacity: CapacityIn(member.Metadata)})
	}
	view.share()
	return view, append(changes, planned.Done(), changed.Done()), nil
}

// share gives each member that is there what the plan names, as far as that is an item. An item that the plan names twice counts once.
func (v *AssignmentView) share() {
	place := placesOf(v.All())
	taken := make([]bool, len(place))
	for i := range v.Members {
		member := &v.Members[i]
		for _, item := range v.plan[member.Name] {
			if at, is := place[item]; is && !taken[at] {
				taken[at] = true
				member.Items = append(member.Items, item)
			}
		}
		slices.SortFunc(member.Items, func(a, b string) int { return place[a] - place[b] })
	}
}

// placesOf says at which place each item stands.
func placesOf(items []string) map[string]int {
	place := make(map[string]int, len(items))
	for at, item := range items {
		place[item] = at
	}
	return place
}

func (a Assignment) watchPlan(ctx context.Context, tree Tree) (Node, *Signal, error) {
	plan, changed, err := tree.Watch(ctx, a.planPath())
	if errors.Is(err, ErrNoNode) { // one that comes tells whoever watches the set's children
		_, changed, err = tree.WatchChildren(ctx, a.Path)
		if errors.Is(err, ErrNoNode) {
			err = ErrNoAssignment
		}
	}
	return plan, changed, err
}

func (a Assignment) watchItems(ctx context.Context, tree Tree) (view AssignmentView, changed *Signal, _ error) {
	node, changed, err := tree.Watch(ctx, a.Path)
	if errors.Is(err, ErrNoNode) || err == nil && node.Bare {
		return view, nil, ErrNoAssignment
	}
	if err != nil {
		return view, nil, err
	}
	view.version = node.Version
	if json.Unmarshal(node.Data, &view.Items) != nil || view.Count < 0 || view.Count > MaxSetItems || len(view.Names) > MaxSetItems {
		return view, nil, ErrMalformedRecord
	}
	return view, changed, nil
}

// Get reads the set as it is now. Errors as of Watch.
func (a Assignment) Get(ctx context.Context, tree Tree) (AssignmentView, error) {
	if err := tree.CatchUp(ctx); err != nil {
		return AssignmentView{}, unsent(err)
	}
	return a.Read(ctx, tree)
}

// Read reads the set as the tree shows it. Errors as of Watch.
func (a Assignment) Read(ctx context.Context, tree Tree) (AssignmentView, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // of the watching
	view, _, err := a.Watch(ctx, tree)
	return view, err
}

// Define makes a set of items, or gives it others. Without drop, items that a member has stay: ErrItemsAssigned.
func (a Assignment) Define(ctx context.Context, store Store, items Items, drop bool) error {
	for {
		view, err := a.Get(ctx, store)
		change := Set(a.Path, compact(items), view.version)
		switch {
		case errors.Is(err, ErrNoAssignment):
			err = a.make(ctx, store, items)
		case err != nil && !errors.Is(err, ErrMalformedRecord):
			return err
		case err == nil && slices.Equal(view.All(), items.All()):
			return nil
		default:
			if err := view.mayBecome(items); err != nil && !drop {
				return err
			}
			_, err = store.Commit(ctx, change)
		}
		if err == nil {
			return nil
		}
		if err := again(err); err != nil {
			return err
		}
	}
}

// make makes the set's node. A container that a late member has left there becomes it.
func (a Assignment) make(ctx context.Context, store Store, items Items) error {
	_, err := store.Commit(ctx, Create(a.Path, compact(items)))
	switch {
	case errors.Is(err, ErrNoNode):
		return errors.Join(ErrNoNode, store.MakeDirectory(ctx, path.Dir(a.Path)))
	case !errors.Is(err, ErrExists):
		return err
	}
	left, failure := store.Get(ctx, a.Path)
	if failure != nil || !left.Bare {
		return errors.Join(err, failure)
	}
	_, err = store.Commit(ctx, Set(a.Path, compact(items), left.Version))
	return err
}

// mayBecome says whether no member has an item that is not among the others.
func (v *AssignmentView) mayBecome(items Items) error {
	stay := map[string]bool{}
	for _, item := range items.All() {
		stay[item] = true
	}
	for _, member := range v.Members {
		for _, item := range member.Items {
			if !stay[item] {
				return &ItemAssigned{Item: item, Member: member.Name}
			}
		}
	}
	return nil
}

// Remove removes the set. ErrNoAssignment, ErrAssignmentInUse.
func (a Assignment) Remove(ctx context.Context, store Store) error {
	for tried := false; ; tried = true {
		view, err := a.Get(ctx, store)
		switch {
		case errors.Is(err, ErrNoAssignment) && tried: // a reply was lost
			return nil
		case err != nil && !errors.Is(err, ErrMalformedRecord):
			return err
		case len(view.Members) > 0:
			return ErrAssignmentInUse
		}
		if err = a.clear(ctx, store, view); err == nil {
			return nil
		}
		if err = again(err); err != nil {
			return err
		}
	}
}

// clear deletes what lies at the set's path, in one transaction.
func (a Assignment) clear(ctx context.Context, store Store, view AssignmentView) error {
	var changes []Change
	for _, path := range []string{a.planPath(), a.Members().Path} {
		node, err := store.Get(ctx, path)
		if errors.Is(err, ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		changes = append(changes, Delete(path, node.Version))
	}
	_, err := store.Commit(ctx, append(changes, Delete(a.Path, view.version))...)
	if errors.Is(err, ErrNotEmpty) {
		return ErrAssignmentInUse
	}
	return err
}
