package server

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// Metrics counts what happens in one sidecar. It is the Events of its services, and takes the ensemble's part through
// HeartbeatLate, EnsembleRestored and RequestDone. Each Metrics has a registry of its own.
type Metrics struct {
	registry *prometheus.Registry
	classOf  func(name string) string // nil without a policy

	calls                   sync.Map               // of methods to their callCounts
	started, handled        *prometheus.CounterVec // calls
	received, sent          *prometheus.CounterVec // their messages
	leases, holds           prometheus.Gauge
	waiters                 *prometheus.GaugeVec
	leaseTime, holdTime     prometheus.Histogram
	waitTime                *prometheus.HistogramVec
	leaseLosses, holdLosses *prometheus.CounterVec
	members                 prometheus.Gauge
	memberTime              prometheus.Histogram
	memberLosses            *prometheus.CounterVec
	numbers, writes         *prometheus.CounterVec
	sharers, shared         prometheus.Gauge
	plans                   *prometheus.CounterVec
	keyWatches, watched     prometheus.Gauge
	heartbeatsLate          prometheus.Counter
	restores                prometheus.Counter
	refusedPolicy           prometheus.Gauge
	requestTime             *prometheus.HistogramVec
	requestsLost            *prometheus.CounterVec
	requestsDenied          prometheus.Counter
	callErrors              *prometheus.CounterVec
	quotaRefusals           *prometheus.CounterVec
	linesDropped            *prometheus.CounterVec
	leasesNotNoted          prometheus.Counter
	schedules               *scheduleMetrics
	certificates            *certificates
}

// Buckets, in seconds. Calls and requests take milliseconds; waits and holds anything up to days.
var (
	shortTimes = prometheus.ExponentialBuckets(0.0005, 2, 15)
	longTimes  = prometheus.ExponentialBuckets(0.002, 4, 12)
)

// NewMetrics makes the metrics of one sidecar.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	f := factory{promauto.With(registry)}
	m := &Metrics{
		registry: registry,

		started:  f.calls("started_total", "Calls that have begun."),
		handled:  f.calls("handled_total", "Calls that have ended, by status code.", "grpc_code"),
		received: f.calls("msg_received_total", "Messages from callers."),
		sent:     f.calls("msg_sent_total", "Messages to callers."),

		leases:         f.gauge("leases_open", "Open leases."),
		holds:          f.gauge("holds", "Locks held through this sidecar."),
		waiters:        f.gauges("waiters", "Callers that wait, by what for.", "kind"),
		leaseTime:      f.histogram("lease_seconds", "Lifetime of leases that have ended.", longTimes),
		holdTime:       f.histogram("hold_seconds", "Duration of holds that have ended.", longTimes),
		waitTime:       f.histograms("wait_seconds", "How long callers waited, by what for.", longTimes, "kind", "granted", "class"),
		leaseLosses:    f.counters("lease_losses_total", "Leases that ended without their caller asking, by reason.", "reason"),
		holdLosses:     f.counters("hold_losses_total", "Holds that ended without their caller asking, by reason.", "reason"),
		members:        f.gauge("members", "Members of groups and sets that have joined through this sidecar."),
		memberTime:     f.histogram("member_seconds", "Duration of memberships that have ended.", longTimes),
		memberLosses:   f.counters("member_losses_total", "Members that ended without their caller asking, by reason.", "reason"),
		numbers:        f.counters("sequence_numbers_total", "Sequence numbers issued, by ordering.", "ordering"),
		writes:         f.counters("sequence_writes_total", "Writes of sequences, by outcome.", "outcome"),
		sharers:        f.gauge("assignment_members", "Members of sets of items that have joined through this sidecar."),
		shared:         f.gauge("assignment_items", "Items that members that have joined through this sidecar are assigned."),
		plans:          f.counters("assignment_plans_total", "Writes of plans of sets, by outcome.", "outcome"),
		keyWatches:     f.gauge("key_watches", "Callers that watch configuration keys."),
		watched:        f.gauge("watched_nodes", "Nodes watched for callers that watch groups, sets and keys."),
		heartbeatsLate: f.counter("heartbeats_late_total", "Heartbeats that the ensemble did not answer in time."),
		restores:       f.counter("ensemble_restores_total", "Times that the ensemble was found to be restored from an older state."),
		refusedPolicy:  f.gauge("policy_refused", "1 while the policy file is invalid and its last valid version is in force, else 0."),
		requestTime: f.histograms("zookeeper_request_seconds", "Time until the ensemble answered, by operation.",
			shortTimes, "operation"),
		requestsLost:   f.counters("zookeeper_requests_lost_total", "Requests to the ensemble whose answer was lost, by operation.", "operation"),
		requestsDenied: f.counter("zookeeper_requests_denied_total", "Requests that the ensemble's access control refused."),
		callErrors:     f.counters("call_errors_total", "Calls that ended with an error, by reason.", "reason"),
		quotaRefusals: f.counters("quota_refusals_total",
			"Calls and connections refused because their caller had reached a limit of one caller, by limit.", "limit"),
		leasesNotNoted: f.counter("leases_not_noted_total", "Leases that cannot be resumed, because the state directory could not be written."),
		linesDropped:   f.counters("log_lines_dropped_total", "Lines that were not written in time, by log.", "log"),
		schedules:      newScheduleMetrics(f),
		certificates:   &certificates{newest: map[string]func() *tls.Config{}},
	}
	registry.MustRegister(handlings{m}, m.certificates, buildInfo(), collectors.NewBuildInfoCollector(), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.begin()
	return m
}

// The callCounts of one method.
type callCounts struct {
	started, received, sent prometheus.Counter
	handled                 *prometheus.CounterVec // by status code
	well                    prometheus.Counter     // of handled: OK
	times                   *handling              // of a unary method; nil for streams, which last as long as their callers want
}

// callsOf are those of a method, whose calls are of one kind.
func (m *Metrics) callsOf(method, kind string) *callCounts {
	if known, is := m.calls.Load(method); is {
		return known.(*callCounts)
	}
	service, name := splitMethod(method)
	labels := prometheus.Labels{"grpc_type": kind, "grpc_service": service, "grpc_method": name}
	handled := m.handled.MustCurryWith(labels)
	counts := &callCounts{m.started.With(labels), m.received.With(labels), m.sent.With(labels), handled, handled.WithLabelValues("OK"), nil}
	if kind == unaryCall {
		counts.times = new(handling)
	}
	made, _ := m.calls.LoadOrStore(method, counts)
	return made.(*callCounts)
}

// hasEnded counts a call that has ended so.
func (c *callCounts) hasEnded(code codes.Code) {
	if code == codes.OK {
		c.well.Inc()
		return
	}
	c.handled.WithLabelValues(code.String()).Inc()
}

// splitMethod is the name of a method's service, and its own.
func splitMethod(method string) (service, name string) {
	service, name, _ = strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service, name
}

// Handler serves the metrics in Prometheus' format, or in that of OpenMetrics to those who ask for it.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// LeaseOpened implements Events.
func (m *Metrics) LeaseOpened() { m.leases.Inc() }

// LeaseNotNoted implements Events.
func (m *Metrics) LeaseNotNoted() { m.leasesNotNoted.Inc() }

// LeaseEnded implements Events.
func (m *Metrics) LeaseEnded(reason string, lasted time.Duration) {
	m.leases.Dec()
	m.leaseTime.Observe(lasted.Seconds())
	if reason != "CLOSED" {
		m.leaseLosses.WithLabelValues(reason).Inc()
	}
}

// WaitBegun implements Events.
func (m *Metrics) WaitBegun(kind string) { m.waiters.WithLabelValues(kind).Inc() }

// WaitEnded implements Events.
func (m *Metrics) WaitEnded(kind, name string, granted bool, waited time.Duration) {
	m.waiters.WithLabelValues(kind).Dec()
	answer := "no"
	if granted {
		answer = "yes"
	}
	m.waitTime.WithLabelValues(kind, answer, m.class(name)).Observe(waited.Seconds())
}

// class is that of a name, in the policy in force.
func (m *Metrics) class(name string) string {
	if m.classOf == nil {
		return policy.DefaultClass
	}
	return m.classOf(name)
}

// HoldBegun implements Events.
func (m *Metrics) HoldBegun() { m.holds.Inc() }

// HoldEnded implements Events.
func (m *Metrics) HoldEnded(reason string, held time.Duration) {
	m.holds.Dec()
	m.holdTime.Observe(held.Seconds())
	if reason != "RELEASED" {
		m.holdLosses.WithLabelValues(reason).Inc()
	}
}

// MemberJoined implements Events.
func (m *Metrics) MemberJoined() { m.members.Inc() }

// MemberEnded implements Events.
func (m *Metrics) MemberEnded(reason string, lasted time.Duration) {
	m.members.Dec()
	m.memberTime.Observe(lasted.Seconds())
	if reason != "LEFT" {
		m.memberLosses.WithLabelValues(reason).Inc()
	}
}

// NumbersIssued implements Events.
func (m *Metrics) NumbersIssued(ordering string, count int64) {
	m.numbers.WithLabelValues(ordering).Add(float64(count))
}

// SequenceWritten implements Events.
func (m *Metrics) SequenceWritten(outcome string) { m.writes.WithLabelValues(outcome).Inc() }

// PlanWritten implements Events.
func (m *Metrics) PlanWritten(outcome string) { m.plans.WithLabelValues(outcome).Inc() }

// SharesChanged implements Events.
func (m *Metrics) SharesChanged(members, items int) {
	m.sharers.Add(float64(members))
	m.shared.Add(float64(items))
}

// KeyWatchBegun implements Events.
func (m *Metrics) KeyWatchBegun() { m.keyWatches.Inc() }

// KeyWatchEnded implements Events.
func (m *Metrics) KeyWatchEnded() { m.keyWatches.Dec() }

// NodesWatched implements Events.
func (m *Metrics) NodesWatched(sum int) { m.watched.Set(float64(sum)) }

// lateHeartbeats is what HeartbeatLate has counted.
func (m *Metrics) lateHeartbeats() (count int) {
	read(m.heartbeatsLate, func(_ string, counted *dto.Metric) { count = int(counted.GetCounter().GetValue()) })
	return count
}

// HeartbeatLate counts a heartbeat that the ensemble did not answer in time.
func (m *Metrics) HeartbeatLate() { m.heartbeatsLate.Inc() }

// EnsembleRestored counts that the ensemble was found to be restored from an older state.
func (m *Metrics) EnsembleRestored() { m.restores.Inc() }

// RequestDone counts a request to the ensemble that was answered, or whose answer was lost.
func (m *Metrics) RequestDone(_ context.Context, operation string, took time.Duration, lost bool) {
	m.requestTime.WithLabelValues(operation).Observe(took.Seconds())
	if lost {
		m.requestsLost.WithLabelValues(operation).Inc()
	}
}

// RequestDenied counts a request that the ensemble's access control refused.
func (m *Metrics) RequestDenied() { m.requestsDenied.Inc() }

// LogLinesDropped counts lines of a log that were not written.
func (m *Metrics) LogLinesDropped(log string) func(lines int) {
	counter := m.linesDropped.WithLabelValues(log)
	return func(lines int) { counter.Add(float64(lines)) }
}

const namespace = "sidekeeper"

// A factory makes metrics that a registry has from the start.
type factory struct{ promauto.Factory }

func (f factory) gauge(name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
}

func (f factory) gauges(name, help, label string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, []string{label})
}

func (f factory) counter(name, help string) prometheus.Counter {
	return f.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

// calls counts calls under the names that interceptors of gRPC have everywhere.
func (f factory) calls(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Namespace: "grpc_server", Name: name, Help: help},
		append([]string{"grpc_type", "grpc_service", "grpc_method"}, labels...))
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return f.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(
		prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// refused counts what a caller was told, and of which limit of its own.
func (m *Metrics) refused(answer *status.Status, reason string) {
	m.callErrors.WithLabelValues(reason).Inc()
	if reason != quotaExceeded {
		return
	}
	for _, detail := range answer.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetMetadata()["caller"] != "" { // else it is a quota of the ensemble
			m.quotaRefusals.WithLabelValues(info.GetMetadata()["limit"]).Inc()
		}
	}
}

// limitReached counts a connection that was refused.
func (m *Metrics) limitReached(limit policy.Limit) {
	m.quotaRefusals.WithLabelValues(limit.String()).Inc()
}

// policyRefused says whether the policy's file cannot be used.
func (m *Metrics) policyRefused(refused bool) {
	m.refusedPolicy.Set(oneIf(refused))
}
