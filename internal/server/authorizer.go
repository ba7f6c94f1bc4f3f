package server

import (
	"slices"
	"strings"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/methods"
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
type authorizer struct {
	policy *policyFile
	open   *openStreams
}

// A question is who asks for what, without the request that asks for it.
type question struct {
	from   caller.Caller
	method string
	action policy.Action
	names  []string
	member []string
	locks  []string // of the tickets that guard what is written
}

// questionOf is what the request asks. Who may open a lease may do it by Multiplex: what is begun there is asked for by itself.
func questionOf(from caller.Caller, method string, request any) question {
	if method == leasev1.LeaseService_Multiplex_FullMethodName {
		method = leasev1.LeaseService_Open_FullMethodName
	}
	of := methods.Of(method)
	return question{from, method, actionOf(method, request), of.NamesIn(request), of.MembersIn(request), methods.GuardsIn(request)}
}

// judge says whether the caller may make this request. Without a policy, and on the operators' listener, that depends on the method
// alone; the handlers of methods that only some requests use as operators do ask caller.MayOperate.
func (a authorizer) judge(asked question) error {
	of := methods.Of(asked.method)
	switch {
	case isOpen(asked.method), asked.from.Operator, of != nil && of.Ends:
		return nil
	case a.policy == nil && of != nil && of.Operator:
		return service.ErrOperatorOnly
	case a.policy == nil:
		return nil
	case of == nil || !a.policy.Last().Allows(asked.from.Identity, asked.action.Name, asked.names, asked.member...):
		return service.PolicyDenied(asked.from.Identity, asked.action.Name)
	case len(asked.locks) > 0 && !a.policy.Last().Allows(asked.from.Identity, readsLock, asked.locks):
		return service.PolicyDenied(asked.from.Identity, readsLock)
	}
	return nil
}

// mayAsk says whether the caller may make any call of this method, before its request is read.
func (a authorizer) mayAsk(from caller.Caller, method string) error {
	if a.policy == nil || from.Operator || isOpen(method) {
		return nil
	}
	if method == leasev1.LeaseService_Multiplex_FullMethodName {
		method = leasev1.LeaseService_Open_FullMethodName
	}
	name, use := strings.TrimPrefix(method, "/"), ""
	of := methods.Of(method)
	if of != nil && of.Ends {
		return nil
	}
	if of != nil && of.Use != "" {
		use = name + ":" + of.Use
	}
	if !a.policy.Last().MayAsk(from.Identity, name, use) {
		return service.PolicyDenied(from.Identity, name)
	}
	return nil
}

// operates says whether the caller may do what operators do with a call that it may make.
func (a authorizer) operates(asked question) bool {
	return asked.from.Operator || a.policy != nil && asked.action.Operator
}

// policyActions are all that a policy can speak of.
func policyActions() []policy.Action { return actionsOf(methods.All()) }
