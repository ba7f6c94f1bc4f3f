package embedded

import (
	"errors"
	"fmt"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A Code is what ZooKeeper answers when it refuses a request; the numbers are those of its wire protocol.
type Code int32

// The codes this ensemble answers with.
const (
	codeOK               Code = 0
	codeRuntimeInconsist Code = -2
	codeMarshalling      Code = -5
	codeUnimplemented    Code = -6
	codeBadArguments     Code = -8
	codeReconfigDisabled Code = -123
	codeNoNode           Code = -101
	codeNoAuth           Code = -102
	codeBadVersion       Code = -103
	codeNoChildren       Code = -108 // the parent is ephemeral
	codeNodeExists       Code = -110
	codeNotEmpty         Code = -111
	codeSessionExpired   Code = -112
	codeInvalidACL       Code = -114
	codeAuthFailed       Code = -115
	codeNoWatcher        Code = -121
)

var codeTexts = map[Code]string{
	codeRuntimeInconsist: "another operation of the multi failed",
	codeMarshalling:      "request cannot be read",
	codeUnimplemented:    "not implemented",
	codeBadArguments:     "bad arguments",
	codeReconfigDisabled: "reconfiguration is disabled",
	codeNoNode:           "no such node",
	codeNoAuth:           "denied by access control",
	codeBadVersion:       "node has another version",
	codeNoChildren:       "ephemeral nodes have no children",
	codeNodeExists:       "node exists",
	codeNotEmpty:         "node has children",
	codeSessionExpired:   "session expired",
	codeInvalidACL:       "invalid access control list",
	codeAuthFailed:       "authentication failed",
	codeNoWatcher:        "no such watch",
}

// Error gives the code's meaning.
func (c Code) Error() string {
	if text, known := codeTexts[c]; known {
		return text
	}
	return fmt.Sprintf("ZooKeeper error %d", int32(c))
}

// recipeErrors are the recipes' names of codes.
var recipeErrors = map[Code]error{
	codeNoNode:         recipes.ErrNoNode,
	codeBadVersion:     recipes.ErrBadVersion,
	codeNoAuth:         recipes.ErrDenied,
	codeNodeExists:     recipes.ErrExists,
	codeNotEmpty:       recipes.ErrNotEmpty,
	codeNoChildren:     recipes.ErrNoChildren,
	codeSessionExpired: recipes.ErrSessionEnded,
}

// Is makes errors.Is find the recipes' name of a code.
func (c Code) Is(target error) bool { return target != nil && recipeErrors[c] == target }

// codeOf is the code that an error carries.
func codeOf(err error) Code {
	if code, ok := errors.AsType[Code](err); ok {
		return code
	}
	if err == nil {
		return codeOK
	}
	return codeMarshalling
}
