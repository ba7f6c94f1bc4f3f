package service

import (
	"slices"
	"strings"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// openServices say nothing about anybody's names, and need no rule.
var openServices = []string{
	healthpb.Health_ServiceDesc.ServiceName, reflectionpb.ServerReflection_ServiceDesc.ServiceName,
	reflectionalphapb.ServerReflection_ServiceDesc.ServiceName,
}

func isOpen(method string) bool {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return slices.Contains(openServices, service)
}

// A guard decides whether a call may be made. Every request of every call passes it before anything else sees it.
type guard struct{ policy *policyFile }

// A verdict is what a guard has decided about a call.
type verdict struct{ operates bool } // whether the caller may do what operators do with it

// judge says whether the caller may make this request. Without a policy, and on the operators' listener, that depends on the method
// alone; the handlers of methods that only some requests use as operators do ask mayOperate.
func (g guard) judge(from caller, method string, request any) (verdict, error) {
	of, known := subjects[method]
	switch {
	case isOpen(method):
		return verdict{}, nil
	case from.operator:
		return verdict{operates: true}, nil
	case g.policy == nil && of.operator:
		return verdict{}, errOperatorOnly
	case g.policy == nil:
		return verdict{}, nil
	case !known:
		return verdict{}, PolicyDenied(from.identity, strings.TrimPrefix(method, "/"))
	}
	action := of.action(method, request)
	if !g.policy.Last().Allows(from.identity, action.Name, namesIn(method, request)) {
		return verdict{}, PolicyDenied(from.identity, action.Name)
	}
	return verdict{operates: action.Operator}, nil
}

// policyActions are all that a policy can speak of.
func policyActions() []policy.Action {
	var methods []string
	for method := range subjects {
		methods = append(methods, method)
	}
	slices.Sort(methods)
	return actionsOf(methods)
}
