package server

import (
	"crypto/tls"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/reload"
)

// certificates are the sidecar's own, by the side that they are shown to. A scrape reads those anew whose files have changed.
type certificates struct {
	mu     sync.Mutex
	newest map[string]func() *tls.Config
}

var (
	notBefore = explained("certificate_not_before_timestamp_seconds", "Since when the certificate of the sidecar is valid, by side.", "side")
	notAfter  = explained("certificate_not_after_timestamp_seconds", "Until when the certificate of the sidecar is valid, by side.", "side")
)

// KeepCertificate keeps what is made of the files of a certificate, authorities and keys. Metrics tell until when the certificate is valid, by
// the side that it is shown to. At the start and for each new one, the log says if that is soon.
func (m *Metrics) KeepCertificate(
	side, flag string, log *zap.Logger, parse func(contents [][]byte) (*tls.Config, error), report func(*tls.Config, error), files ...string,
) (newest func() *tls.Config, err error) {
	kept, err := reload.Open(parse, func(config *tls.Config, trouble error) {
		report(config, trouble)
		if trouble == nil {
			tellExpiry(log, flag, config)
		}
	}, files...)
	if err != nil {
		return nil, err
	}
	tellExpiry(log, flag, kept.Last())
	m.certificates.mu.Lock()
	defer m.certificates.mu.Unlock()
	m.certificates.newest[side] = kept.Newest
	return kept.Newest, nil
}

// expiresSoon is when a warning is due for certificates that last for a month or longer. Those that last for a day are renewed at any hour.
const expiresSoon = 7 * 24 * time.Hour

func tellExpiry(log *zap.Logger, flag string, config *tls.Config) {
	if len(config.Certificates) == 0 {
		return
	}
	of := config.Certificates[0].Leaf
	about := []zap.Field{zap.String("flag", flag), zap.Time("expires", of.NotAfter)}
	switch left := time.Until(of.NotAfter); {
	case left <= 0:
		log.Error("the certificate has expired", about...)
	case left < min(expiresSoon, of.NotAfter.Sub(of.NotBefore)/4):
		log.Warn("the certificate expires soon", about...)
	}
}

// Describe implements prometheus.Collector.
func (c *certificates) Describe(to chan<- *prometheus.Desc) {
	to <- notBefore
	to <- notAfter
}

// Collect implements prometheus.Collector.
func (c *certificates) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	newest := maps.Clone(c.newest)
	c.mu.Unlock()
	for side, config := range newest {
		for _, own := range config().Certificates {
			for of, at := range map[*prometheus.Desc]time.Time{notBefore: own.Leaf.NotBefore, notAfter: own.Leaf.NotAfter} {
				to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, at.Sub(time.Unix(0, 0)).Seconds(), side)
			}
		}
	}
}
