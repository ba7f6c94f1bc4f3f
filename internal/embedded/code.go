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

// codes are what the codes mean, and the recipes' names of those that recipes know.
var codes = map[Code]struct {
	text   string
	recipe error
}{
	codeRuntimeInconsist: {text: "another operation of the multi failed"},
	codeMarshalling:      {text: "request cannot be read"},
	codeUnimplemented:    {text: "not implemented"},
	codeBadArguments:     {text: "bad arguments"},
	codeReconfigDisabled: {text: "reconfiguration is disabled"},
	codeNoNode:           {"no such node", recipes.ErrNoNode},
	codeNoAuth:           {"denied by access control", recipes.ErrDenied},
	codeBadVersion:       {"node has another version", recipes.ErrBadVersion},
	codeNoChildren:       {"ephemeral nodes have no children", recipes.ErrNoChildren},
	codeNodeExists:       {"node exists", recipes.ErrExists},
	codeNotEmpty:         {"node has children", recipes.ErrNotEmpty},
	codeSessionExpired:   {"session expired", recipes.ErrSessionEnded},
	codeInvalidACL:       {text: "invalid access control list"},
	codeAuthFailed:       {text: "authentication failed"},
	codeNoWatcher:        {text: "no such watch"},
}

// Error gives the code's meaning.
func (c Code) Error() string {
	if code, known := codes[c]; known {
		return code.text
	}
	return fmt.Sprintf("ZooKeeper error %d", int32(c))
}

// Is makes errors.Is find the recipes' name of a code.
func (c Code) Is(target error) bool { return target != nil && codes[c].recipe == target }

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
