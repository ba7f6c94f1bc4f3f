package inject

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what the injector tells of itself.
type metrics struct {
	registry *prometheus.Registry
	reviews  *prometheus.CounterVec
	expiry   prometheus.Gauge
	failures prometheus.Counter
}

func newMetrics() *metrics {
	registry := prometheus.NewRegistry()
	factory := promauto.With(registry)
	m := &metrics{
		registry: registry,
		reviews: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "sidekeeper_injector_reviews_total", Help: "Pods that API servers have asked about, by outcome.",
		}, []string{"outcome"}),
		expiry: factory.NewGauge(prometheus.GaugeOpts{
			Name: "sidekeeper_injector_certificate_remaining_seconds",
			Help: "For how long the certificate in use is still valid, as of the last look at it.",
		}),
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "sidekeeper_injector_certificate_failures_total",
			Help: "Looks at the certificate that failed: at its Secret, the webhook configuration or its files.",
		}),
	}
	for _, outcome := range outcomes {
		m.reviews.WithLabelValues(outcome)
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}
