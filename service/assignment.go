package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// longestSet leaves room for an item behind it in the name of a lock.
const longestSet = 135 // bytes of the 200 of a name, without a slash and a segment

// assignmentService answers sidekeeper.assignment.v1.AssignmentService. The lock of an item is LockService's of the set's name and the item's.
type assignmentService struct {
	assignmentv1.UnsafeAssignmentServiceServer

	services *Services
}

func (s *Services) assignmentDirectory() directory { return directory{root: s.options.AssignmentRoot} }

func (s *Services) assignment(of name) recipes.Assignment {
	return recipes.Assignment{Path: s.assignmentDirectory().flat(of)}
}

// parseSet checks the name of a set.
func parseSet(request interface{ GetSet() string }) (name, error) {
	of, err := parseName("set", request.GetSet())
	if err == nil && len(of.text) > longestSet {
		err = invalid("set", of.text, fmt.Sprintf("at most %d bytes, for its items' locks have names too", longestSet))
	}
	return of, err
}

func (s *assignmentService) wrote(ctx context.Context, what string, set name, err error, more ...zap.Field) {
	s.services.audit.wrote(caller.Of(ctx), kindAssignment, what, set.text, err, more...)
}

func (s *assignmentService) Define(ctx context.Context, request *assignmentv1.DefineRequest) (*assignmentv1.DefineResponse, error) {
	set, err := parseSet(request)
	if err != nil {
		return nil, err
	}
	items, err := parseItems(request)
	if err != nil {
		return nil, err
	}
	err = s.services.assignment(set).Define(ctx, s.services.ensemble, items, request.GetDrop())
	s.wrote(ctx, "define", set, err, zap.Int("items", len(items.All())))
	return &assignmentv1.DefineResponse{}, meaningOfSet(err, set.text)
}

func parseItems(request *assignmentv1.DefineRequest) (items recipes.Items, _ error) {
	names, count := request.GetItems(), int(request.GetCount())
	number := strconv.Itoa(count)
	switch {
	case count != 0 && len(names) > 0:
		return items, invalid("count", number, "omitted beside items")
	case len(names) > recipes.MaxSetItems:
		return items, invalid("items", fmt.Sprintf("%d of them", len(names)), fmt.Sprintf("at most %d", recipes.MaxSetItems))
	case len(names) == 0 && (count < 1 || count > recipes.MaxSetItems):
		return items, invalid("count", number, fmt.Sprintf("from 1 to %d, unless items are named", recipes.MaxSetItems))
	}
	seen := map[string]bool{}
	for i, item := range names {
		field := fmt.Sprintf("items[%d]", i)
		if _, err := parseSegment(field, item); err != nil {
			return items, err
		}
		if seen[item] {
			return items, invalid(field, item, "an item that was not named before")
		}
		seen[item] = true
	}
	return recipes.Items{Names: names, Count: count}, nil
}

// meaningOfSet names the set in an error.
func meaningOfSet(err error, set string) error {
	var assigned *recipes.ItemAssigned
	switch {
	case errors.As(err, &assigned):
		facts := map[string]string{"item": assigned.Item, "member": assigned.Member}
		return &detailedError{kind: recipes.ErrItemsAssigned, facts: facts, text: quoted(assigned.Member) + " has " + quoted(assigned.Item)}
	case errors.Is(err, recipes.ErrNoAssignment):
		return &detailedError{kind: recipes.ErrNoAssignment, text: set}
	}
	return err
}

func (s *assignmentService) SetCapacity(
	ctx context.Context, request *assignmentv1.SetCapacityRequest,
) (*assignmentv1.SetCapacityResponse, error) {
	set, err := parseSet(request)
	if err != nil {
		return nil, err
	}
	named, err := parseSegment("member", request.GetMember())
	if err != nil {
		return nil, err
	}
	capacity, err := parseCapacity(request.GetCapacity())
	if err != nil {
		return nil, err
	}
	found := s.services.members.find(shareResource(set, named), caller.Of(ctx), nil)
	if found == nil {
		return nil, recipes.ErrNoMember
	}
	_, err = found.update(ctx, guards{services: s.services}, func(said map[string]string) map[string]string {
		return recipes.WithCapacity(said, capacity)
	})
	return &assignmentv1.SetCapacityResponse{}, err
}

func parseCapacity(capacity int32) (int, error) {
	if capacity < 0 || capacity > recipes.MaxSetItems {
		return 0, invalid("capacity", strconv.Itoa(int(capacity)), fmt.Sprintf("from 0 to %d", recipes.MaxSetItems))
	}
	return int(capacity), nil
}

func (s *assignmentService) Get(ctx context.Context, request *assignmentv1.GetRequest) (*assignmentv1.GetResponse, error) {
	set, err := parseSet(request)
	if err != nil {
		return nil, err
	}
	view, err := s.services.assignment(set).Get(ctx, s.services.ensemble)
	if err != nil {
		return nil, meaningOfSet(err, set.text)
	}
	shown := setOnWire(set, view)
	if request.GetHolders() {
		err = s.addHolders(ctx, set, shown)
	}
	return &assignmentv1.GetResponse{View: shown}, err
}

// addHolders adds who holds the lock of each item.
func (s *assignmentService) addHolders(ctx context.Context, set name, shown *assignmentv1.View) error {
	locks := s.services.lockDirectory()
	return recipes.EachOf(len(shown.GetItems()), func(i int) error {
		item := shown.GetItems()[i]
		view, err := locks.lock(name{set.text + "/" + item.GetItem()}).View(ctx, s.services.ensemble)
		if err == nil && len(view.Holders) > 0 {
			holder := view.Holders[0]
			item.Holder = &assignmentv1.Holder{
				Owner: holder.Owner, Member: holder.Metadata["member"], Age: durationpb.New(holder.Age), FencingToken: holder.Token,
			}
		}
		return err
	})
}

func setOnWire(set name, view recipes.AssignmentView) *assignmentv1.View {
	shown := &assignmentv1.View{Set: set.text, Epoch: view.Epoch, MembersOmitted: int32(view.Omitted)}
	shown.Age, shown.ShortFor = planAge(view), shortFor(view)
	of := map[string]string{}
	for _, member := range view.Members {
		shown.Members = append(shown.Members, &assignmentv1.Member{
			Member: member.Name, Capacity: int32(member.Capacity), Items: int32(len(member.Items)), Owner: member.Owner, Identity: member.Identity,
			Age: durationpb.New(member.Age + time.Since(member.Read)), Metadata: recipes.WithoutCapacity(member.Metadata),
		})
		for _, item := range member.Items {
			of[item] = member.Name
		}
	}
	for _, item := range view.All() {
		shown.Items = append(shown.Items, &assignmentv1.Item{Item: item, Member: of[item]})
	}
	return shown
}

// planAge is how old the plan is; nil without one.
func planAge(view recipes.AssignmentView) *durationpb.Duration {
	if view.Epoch == 0 {
		return nil
	}
	return durationpb.New(max(0, time.Since(view.Planned)))
}

// shortFor is for how long plans have left items over; nil if the last one has left none.
func shortFor(view recipes.AssignmentView) *durationpb.Duration {
	if view.Short.IsZero() {
		return nil
	}
	return durationpb.New(max(0, time.Since(view.Short)))
}

func (s *assignmentService) List(
	ctx context.Context, request *assignmentv1.ListRequest,
) (response *assignmentv1.ListResponse, err error) {
	response = &assignmentv1.ListResponse{}
	response.Sets, response.NextPageToken, err = listPage(ctx, s.services.ensemble, s.services.assignmentDirectory(), request,
		func(ctx context.Context, found name) (*assignmentv1.Set, error) {
			view, err := s.services.assignment(found).Size(ctx, s.services.ensemble)
			switch {
			case errors.Is(err, recipes.ErrNoAssignment):
				return nil, nil
			case errors.Is(err, recipes.ErrMalformedRecord), errors.Is(err, recipes.ErrDenied):
				return &assignmentv1.Set{Set: found.text}, nil
			case err != nil:
				return nil, err
			}
			return &assignmentv1.Set{
				Set: found.text, Items: int32(view.Total()), Members: int32(len(view.Members)), Unassigned: int32(view.Unassigned),
				Age: planAge(view), ShortFor: shortFor(view),
			}, nil
		})
	return response, err
}

func (s *assignmentService) Delete(ctx context.Context, request *assignmentv1.DeleteRequest) (*assignmentv1.DeleteResponse, error) {
	set, err := parseSet(request)
	if err != nil {
		return nil, err
	}
	err = s.services.assignment(set).Remove(ctx, s.services.ensemble)
	s.wrote(ctx, "delete", set, err)
	return &assignmentv1.DeleteResponse{}, meaningOfSet(err, set.text)
}
