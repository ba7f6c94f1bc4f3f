package server

import (
	"github.com/prometheus/client_golang/prometheus"
)

// gauges are the metrics of a Server that are read when a scraper asks, rather than kept.
type gauges struct{ server *Server }

var (
	suspendedLeases    = explained("leases_suspended", "Leases whose heartbeat is late.")
	leastValidity      = explained("lease_validity_min_seconds", "Proven validity of the lease that would end first.")
	leaseLimit         = explained("lease_limit", "Maximum number of open leases.")
	ensembleReachable  = explained("ensemble_reachable", "1 while the ensemble answers, else 0.")
	draining           = explained("draining", "1 while the sidecar drains before it stops, else 0.")
	connections        = explained("connections", "Open connections of callers.")
	connectionLimit    = explained("connection_limit", "Maximum number of connections of callers; 0 for no limit.")
	connectionsRefused = explained("connections_refused_total", "Connections closed on arrival: too many, or too fast.")
)

func explained(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) {
	for _, each := range []*prometheus.Desc{
		suspendedLeases, leastValidity, leaseLimit, ensembleReachable, draining, connections, connectionLimit, connectionsRefused,
	} {
		to <- each
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	is := func(of *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value)
	}
	summary := g.server.handlers.LeaseSummary()
	reachable, _ := g.server.ensemble.Reachable()
	open, refused := g.server.budget.Count()
	is(suspendedLeases, float64(summary.Suspended))
	if summary.Any {
		is(leastValidity, summary.MinValid)
	}
	is(leaseLimit, float64(summary.MaxLeases))
	is(ensembleReachable, oneIf(reachable))
	is(draining, oneIf(summary.Draining))
	is(connections, float64(open))
	is(connectionLimit, float64(g.server.options.MaxConnections))
	to <- prometheus.MustNewConstMetric(connectionsRefused, prometheus.CounterValue, float64(refused))
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
