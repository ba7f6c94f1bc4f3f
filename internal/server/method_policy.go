package server

import (
	"strings"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/methods"
	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// readsLock is what a caller that uses another's ticket must be allowed to do.
var readsLock = strings.TrimPrefix(lockv1.LockService_Get_FullMethodName, "/")

// ownLease is what callers do with the lease that something of theirs stands on.
var ownLease = []string{
	strings.TrimPrefix(leasev1.LeaseService_Open_FullMethodName, "/"), strings.TrimPrefix(leasev1.LeaseService_Close_FullMethodName, "/"),
}

// actionsOf are what a policy can speak of, in the order of their names' bytes.
func actionsOf(names []string) (actions []policy.Action) {
	for _, method := range names {
		of := methods.Of(method)
		name := strings.TrimPrefix(method, "/")
		action := policy.Action{Name: name, Operator: of.Operator, Member: of.Member}
		if of.Leased {
			action.Takes = ownLease
		}
		actions = append(actions, action)
		if of.Use != "" {
			actions = append(actions, policy.Action{Name: name + ":" + of.Use, Operator: true})
		}
	}
	return actions
}

// actionOf is what one call asks for, and whether it is for operators.
func actionOf(method string, request any) policy.Action {
	name, of := strings.TrimPrefix(method, "/"), methods.Of(method)
	switch {
	case of == nil:
		return policy.Action{Name: name}
	case of.IsUse != nil && request != nil && of.IsUse(request):
		return policy.Action{Name: name + ":" + of.Use, Operator: true}
	}
	return policy.Action{Name: name, Operator: of.Operator}
}
