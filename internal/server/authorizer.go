package server

import (
	"maps"
	"slices"
	"strings"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
)

// openServices say nothing about anybody's names, and need no rule.
var openServices = []string{
	healthpb.Health_ServiceDesc.ServiceName, reflectionpb.ServerReflection_ServiceDesc.ServiceName,
	reflectionalphapb.ServerReflection_ServiceDesc.ServiceName,
}

func isOpen(method string) bool {
	of, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return slices.Contains(openServices, of)
}

// An authorizer decides whether a call may be made. Every request of every call passes it before anything else sees it.
type authorizer struct{ policy *policyFile }

// A decision is what an authorizer has decided about a call.
type decision struct{ operates bool } // whether the caller may do what operators do with it

// authorize says whether the caller may make this request. Without a policy, and on the operators' listener, that depends on the method
// alone; the handlers of methods that only some requests use as operators do ask caller.MayOperate.
func (a authorizer) authorize(from caller.Caller, method string, request any) (decision, error) {
	of, known := methodPolicies[method]
	switch {
	case isOpen(method):
		return decision{}, nil
	case from.Operator:
		return decision{operates: true}, nil
	case a.policy == nil && of.operator:
		return decision{}, service.ErrOperatorOnly
	case a.policy == nil:
		return decision{}, nil
	case !known:
		return decision{}, service.PolicyDenied(from.Identity, strings.TrimPrefix(method, "/"))
	}
	action := of.action(method, request)
	if !a.policy.Last().Allows(from.Identity, action.Name, namesIn(method, request)) {
		return decision{}, service.PolicyDenied(from.Identity, action.Name)
	}
	return decision{operates: action.Operator}, nil
}

// policyActions are all that a policy can speak of.
func policyActions() []policy.Action { return actionsOf(slices.Sorted(maps.Keys(methodPolicies))) }
