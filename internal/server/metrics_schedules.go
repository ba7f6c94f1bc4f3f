package server

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
)

// scheduleMetrics are those of schedules, each by class.
type scheduleMetrics struct {
	late        *prometheus.HistogramVec
	missed      *prometheus.CounterVec
	attempts    *prometheus.CounterVec
	attemptTime *prometheus.HistogramVec

	mu      sync.Mutex
	classes map[string]bool // that have series
}

func newScheduleMetrics(f factory) *scheduleMetrics {
	m := &scheduleMetrics{
		late:        f.histograms("schedule_late_seconds", "How late ticks began.", longTimes, "class"),
		missed:      f.counters("schedule_ticks_missed_total", "Ticks that did not begin, and were noted as missed.", "class"),
		attempts:    f.counters("schedule_attempts_total", "Attempts at ticks and runs whose end was recorded, by outcome.", "class", "outcome"),
		attemptTime: f.histograms("schedule_attempt_seconds", "Duration of attempts that were finished.", longTimes, "class"),
		classes:     map[string]bool{},
	}
	m.begin(policy.DefaultClass)
	return m
}

// begin gives every series of a class its first value, once.
func (m *scheduleMetrics) begin(class string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.classes[class] {
		return
	}
	m.classes[class] = true
	m.late.WithLabelValues(class)
	m.missed.WithLabelValues(class)
	m.attemptTime.WithLabelValues(class)
	for _, outcome := range service.AttemptOutcomes {
		m.attempts.WithLabelValues(class, outcome)
	}
}

// scheduleClass is the class of a schedule, which has series from now on.
func (m *Metrics) scheduleClass(schedule string) string {
	class := m.class(schedule)
	m.schedules.begin(class)
	return class
}

// TickBegun implements Events.
func (m *Metrics) TickBegun(schedule string, late time.Duration) {
	m.schedules.late.WithLabelValues(m.scheduleClass(schedule)).Observe(late.Seconds())
}

// TicksMissed implements Events.
func (m *Metrics) TicksMissed(schedule string, count int) {
	m.schedules.missed.WithLabelValues(m.scheduleClass(schedule)).Add(float64(count))
}

// AttemptEnded implements Events. How long an attempt took that was lost is not known.
func (m *Metrics) AttemptEnded(schedule, outcome string, lasted time.Duration) {
	class := m.scheduleClass(schedule)
	m.schedules.attempts.WithLabelValues(class, outcome).Inc()
	if outcome == "succeeded" || outcome == "failed" {
		m.schedules.attemptTime.WithLabelValues(class).Observe(lasted.Seconds())
	}
}

// scheduleGauges are what is read of schedules and claims when a scraper asks.
type scheduleGauges struct{ server *Server }

var (
	runningAttempts = explained("schedule_running", "Attempts at ticks and runs for which callers of this sidecar work now.", "class")
	standingClaims  = explained("claims", "Claims in the ensemble that are held, by state.", "state")
	knownSchedules  = explained("schedules", "Schedules that callers have named to this sidecar, by state.", "class", "state")
)

// Describe implements prometheus.Collector.
func (g scheduleGauges) Describe(to chan<- *prometheus.Desc) {
	to <- runningAttempts
	to <- knownSchedules
	to <- standingClaims
}

// Collect implements prometheus.Collector.
func (g scheduleGauges) Collect(to chan<- prometheus.Metric) {
	type stand struct{ class, state string }
	metrics, running, known := g.server.options.Metrics, map[string]int{}, map[stand]int{}
	for _, schedule := range g.server.handlers.RunningTicks() {
		running[metrics.scheduleClass(schedule)]++
	}
	for schedule, state := range g.server.handlers.ScheduleStates() {
		known[stand{metrics.scheduleClass(schedule), state}]++
	}
	claims := g.server.handlers.ClaimStates()
	for _, state := range service.ClaimStates {
		to <- prometheus.MustNewConstMetric(standingClaims, prometheus.GaugeValue, float64(claims[state]), state)
	}
	for _, class := range metrics.schedules.all() {
		to <- prometheus.MustNewConstMetric(runningAttempts, prometheus.GaugeValue, float64(running[class]), class)
		for _, state := range service.ScheduleStates {
			to <- prometheus.MustNewConstMetric(knownSchedules, prometheus.GaugeValue, float64(known[stand{class, state}]), class, state)
		}
	}
}

func (m *scheduleMetrics) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.classes))
}
