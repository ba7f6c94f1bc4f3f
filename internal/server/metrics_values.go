package server

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	errorsv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/errors/v1"
	"github.com/sidekeeper/sidekeeper/internal/budget"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
)

// The values of labels. They are there from the start, with a count of 0: a series that began with its first event would hide
// that event from whoever asks how much a count has grown.
var (
	leaseLossReasons = []string{"LEASE_LOST", "SIDECAR_STOPPING"}
	holdLossReasons  = []string{
		"INTERNAL", "LEASE_CLOSED", "LEASE_LOST", "LOCK_BROKEN", "LOCK_REVOKED", "NOT_RECORDED", "SIDECAR_STOPPING", "SLOW_READER",
	}
	memberLossReasons = []string{
		"INTERNAL", "LEASE_CLOSED", "LEASE_LOST", "MEMBER_REMOVED", "MEMBER_REPLACED", "SIDECAR_STOPPING", "SLOW_READER",
	}
	operations = []string{
		"check", "create", "createContainer", "createSession", "delete", "exists", "getChildren", "getData", "getEphemerals",
		"heartbeat", "multi", "setData",
	}
)

var quotaExceeded = strings.TrimPrefix(errorsv1.Reason_REASON_QUOTA_EXCEEDED.String(), "REASON_")

// callReasons are all reasons of errors.proto.
func callReasons() []string {
	var reasons []string
	for number, reason := range errorsv1.Reason_name {
		if number != 0 {
			reasons = append(reasons, strings.TrimPrefix(reason, "REASON_"))
		}
	}
	return reasons
}

// begin gives every series its first value.
func (m *Metrics) begin() {
	for counted, values := range map[*prometheus.CounterVec][]string{
		m.leaseLosses:   leaseLossReasons,
		m.holdLosses:    holdLossReasons,
		m.memberLosses:  memberLossReasons,
		m.callErrors:    callReasons(),
		m.requestsLost:  operations,
		m.numbers:       {"RELAXED", "STRICT"},
		m.quotaRefusals: append(policy.LimitNames(), budget.CallsUnderWay, budget.RequestSeconds, budget.RequestFields, budget.UnreadRequests),
		m.linesDropped:  {"audit", "log"},
		m.writes:        service.WriteOutcomes,
		m.plans:         service.WriteOutcomes,
	} {
		for _, value := range values {
			counted.WithLabelValues(value)
		}
	}
	for _, operation := range operations {
		m.requestTime.WithLabelValues(operation)
	}
	for _, kind := range service.WaitKinds {
		m.waiters.WithLabelValues(kind)
		for _, granted := range []string{"no", "yes"} {
			m.waitTime.WithLabelValues(kind, granted, policy.DefaultClass)
		}
	}
}
