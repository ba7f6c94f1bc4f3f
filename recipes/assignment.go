package recipes

import (
	"cmp"
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
	// MaxSetMembers bounds how many members a set has.
	MaxSetMembers = 2000
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

// Total is how many items there are.
func (i Items) Total() int { return max(i.Count, len(i.Names)) }

// planForm is the data of a plan's node.
type planForm struct {
	Members map[string][]string `json:"members,omitempty"` // the items of each, by its name; nil before the first plan
	Short   time.Time           `json:"short,omitzero"`    // since when plans have left items over, by the first planner's clock
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

	Epoch      int64        // tells plans apart, and grows with each; 0 without a plan
	Planned    time.Time    // when the plan was written, by the clock of the ensemble's leader
	Members    []*SetMember // in the order of their names
	Unassigned int          // items that the plan gives to no member that is there
	Short      time.Time    // since when plans in a row have left items over; zero if the last one has left none
	Omitted    int          // members that have no room in a view, or may not be read

	version int32               // of the items
	planned int32               // the version of the plan; −1 without one
	plan    map[string][]string // the items of each member, by its name
	hidden  []*SetMember        // the omitted members, of which only the names are known
}

// capacityOf is how many items a member takes, as its metadata say. A member that says nothing there takes what it gets. Another program's
// takes nothing, for it does not hear of a plan.
func capacityOf(member Member) int {
	if member.Foreign {
		return 0
	}
	capacity, err := strconv.Atoi(member.Metadata[capacityKey])
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
	view.takePlan(plan)
	for _, member := range group.Members {
		view.Members = append(view.Members, &SetMember{Member: member, Capacity: capacityOf(member)})
	}
	for _, name := range group.Omitted {
		view.hidden = append(view.hidden, &SetMember{Member: Member{Name: name}, Capacity: MaxSetItems})
	}
	view.share()
	return view, append(changes, planned.Done(), changed.Done()), nil
}

// WatchExisting is Watch. It says that there is no set only once the tree has caught up.
func (a Assignment) WatchExisting(ctx context.Context, tree Tree) (AssignmentView, Changes, error) {
	view, changes, err := a.Watch(ctx, tree)
	if !errors.Is(err, ErrNoAssignment) {
		return view, changes, err
	}
	if err := tree.CatchUp(ctx); err != nil {
		return view, nil, unsent(err)
	}
	return a.Watch(ctx, tree)
}

// takePlan reads a plan's node, which has no version if it is not there. What another program has written there is no advice.
func (v *AssignmentView) takePlan(plan Node) {
	v.planned = -1
	if plan.Czxid == 0 {
		return
	}
	v.planned = plan.Version
	form := planForm{}
	if json.Unmarshal(plan.Data, &form) == nil && form.Members != nil {
		v.Epoch, v.Planned, v.plan, v.Short = plan.Mzxid, plan.Modified, form.Members, form.Short
	}
}

// share gives each member that is there what the plan names, as far as that is an item. An item that the plan names twice counts once.
func (v *AssignmentView) share() {
	place := placesOf(v.All())
	taken := make([]bool, len(place))
	v.Unassigned, v.Omitted = len(place), len(v.hidden)
	for _, some := range [][]*SetMember{v.Members, v.hidden} {
		for _, member := range some {
			for _, item := range v.plan[member.Name] {
				if at, is := place[item]; is && !taken[at] {
					taken[at] = true
					member.Items = append(member.Items, item)
				}
			}
			v.Unassigned -= len(member.Items)
			slices.SortFunc(member.Items, func(a, b string) int { return place[a] - place[b] })
		}
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
	view, err = itemsIn(node, err)
	return view, changed, err
}

func itemsIn(node Node, err error) (view AssignmentView, _ error) {
	if errors.Is(err, ErrNoNode) || err == nil && node.Bare {
		return view, ErrNoAssignment
	}
	if err != nil {
		return view, err
	}
	view.version = node.Version
	if json.Unmarshal(node.Data, &view.Items) != nil || view.Count < 0 || view.Count > MaxSetItems || len(view.Names) > MaxSetItems {
		return view, ErrMalformedRecord
	}
	return view, nil
}

// Get reads the set as it is now. Errors as of Watch.
func (a Assignment) Get(ctx context.Context, tree Tree) (AssignmentView, error) {
	if err := tree.CatchUp(ctx); err != nil {
		return AssignmentView{}, unsent(err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop() // of the watching
	view, _, err := a.Watch(ctx, tree)
	return view, err
}

// Size is how many items and members a set has, and how many items the plan gives to no member that is there, as the tree shows it. Errors as of
// Watch.
func (a Assignment) Size(ctx context.Context, tree Tree) (view AssignmentView, _ error) {
	plan, err := tree.Get(ctx, a.planPath())
	if err != nil && !errors.Is(err, ErrNoNode) {
		return view, err
	}
	node, err := tree.Get(ctx, a.Path)
	if view, err = itemsIn(node, err); err != nil {
		return view, err
	}
	names, err := tree.Children(ctx, a.Members().Path)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return view, err
	}
	view.takePlan(plan)
	for _, name := range names {
		view.Members = append(view.Members, &SetMember{Member: Member{Name: name}})
	}
	view.share()
	return view, nil
}

// Define makes a set of items, or gives it others. Without drop, items that a member has stay: ErrItemsAssigned.
func (a Assignment) Define(ctx context.Context, store Store, items Items, drop bool) error {
	return a.change(ctx, store, func(view AssignmentView, err error, _ bool) error {
		switch {
		case errors.Is(err, ErrNoAssignment):
			return a.make(ctx, store, items)
		case err != nil && !errors.Is(err, ErrMalformedRecord):
			return err
		case err == nil && slices.Equal(view.All(), items.All()):
			return nil
		}
		if err := view.mayBecome(items); err != nil && !drop {
			return err
		}
		_, err = store.Commit(ctx, Set(a.Path, compact(items), view.version))
		return err
	})
}

// change has the set changed by what it is, until that comes to something. by is given why it cannot be read, and whether a reply was lost.
func (a Assignment) change(ctx context.Context, store Store, by func(view AssignmentView, err error, unknown bool) error) error {
	for unknown := error(nil); ; {
		view, err := a.Get(ctx, store)
		if err == nil || errors.Is(err, ErrNoAssignment) || errors.Is(err, ErrMalformedRecord) {
			err = by(view, err, unknown != nil)
		} else if unknown != nil {
			return errors.Join(unknown, err)
		}
		if errors.Is(err, ErrOutcomeUnknown) {
			unknown = err
		}
		if err == nil || again(err) != nil {
			return err
		}
	}
}

// make makes the set's nodes. A container that a late member has left there becomes it, and stays for the plan's sake.
func (a Assignment) make(ctx context.Context, store Store, items Items) error {
	plan := Create(a.planPath(), compact(planForm{}))
	_, err := store.Commit(ctx, Create(a.Path, compact(items)), plan)
	if errors.Is(err, ErrNoNode) {
		return cmp.Or(store.MakeDirectory(ctx, path.Dir(a.Path)), err)
	}
	if !errors.Is(err, ErrExists) {
		return err
	}
	left, err := store.Get(ctx, a.Path)
	if err != nil || !left.Bare {
		return cmp.Or(err, ErrExists)
	}
	_, err = store.Commit(ctx, Set(a.Path, compact(items), left.Version), plan)
	return err
}

// mayBecome says whether no member has an item that is not among the others.
func (v *AssignmentView) mayBecome(items Items) error {
	stay := setOf(items.All())
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
	return a.change(ctx, store, func(view AssignmentView, err error, unknown bool) error {
		switch {
		case errors.Is(err, ErrNoAssignment) && unknown:
			return nil
		case err != nil && !errors.Is(err, ErrMalformedRecord):
			return err
		case len(view.Members) > 0:
			return ErrAssignmentInUse
		}
		return a.clear(ctx, store, view)
	})
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
