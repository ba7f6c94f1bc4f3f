package recipes

import "errors"

// Errors of groups.
var (
	// ErrMemberExists means that the group has a member of this name already.
	ErrMemberExists = errors.New("the group has a member of this name already")
	// ErrReplaced means that somebody else joined under the member's name and asked for its place.
	ErrReplaced = errors.New("somebody else has taken the member's place")
	// ErrRemoved means that the group was deleted, or the member removed by hand.
	ErrRemoved = errors.New("the member was removed by somebody else")
	// ErrNoMember means that the caller has no such member in the group.
	ErrNoMember = errors.New("no such member of this caller")
	// ErrNoGroup means that there is no such group.
	ErrNoGroup = errors.New("no such group")
	// ErrGroupNotEmpty means that the group has members.
	ErrGroupNotEmpty = errors.New("the group has members")
)
