package server_test

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// lasting is the template of a sidecar's certificate with this life, of which so much is left.
func lasting(life, left time.Duration) *x509.Certificate {
	until := time.Now().Add(left).Truncate(time.Second)
	return &x509.Certificate{DNSNames: []string{"sidecar.test"}, NotBefore: until.Add(-life), NotAfter: until}
}

// seconds are those since 1970.
func seconds(at time.Time) float64 { return at.Sub(time.Unix(0, 0)).Seconds() }

func TestACertificateThatExpiresSoonIsToldAtTheStartAndWithEachNewOne(t *testing.T) {
	t.Parallel()
	const soon, over, day = "the certificate expires soon", "the certificate has expired", 24 * time.Hour
	for name, c := range map[string]struct {
		life, left  time.Duration
		level, told string
	}{
		"of three months, a month before":            {90 * day, 30 * day, "", ""},
		"of three months, six days before":           {90 * day, 6 * day, "warn", soon},
		"of three months, afterwards":                {90 * day, -time.Hour, "error", over},
		"of a day, half a day before":                {day, day / 2, "", ""},
		"of a day, when it should have been renewed": {day, day / 5, "warn", soon},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, renews, starts, metrics := newAuthority(t), &logbook{}, &logbook{}, server.NewMetrics()
			_, files := newTLSProbe(t, a, func(o *server.Options) { o.Log, o.Metrics = renews.Logger(), metrics })
			next := lasting(c.life, c.left)
			a.WritePair(a.Sign(next), files.Certificate, files.Key)
			for edge, at := range map[string]time.Time{"not_before": next.NotBefore, "not_after": next.NotAfter} {
				sample := fmt.Sprintf(`sidekeeper_certificate_%s_timestamp_seconds{side="callers"} %v`, edge, seconds(at))
				same(t, sample, strings.Contains(expect.Scrape(metrics.Handler()), sample+"\n"), true)
			}
			newProbe(t, func(o *server.Options) { o.Listen, o.TLS, o.Log = []string{"127.0.0.1:0"}, files, starts.Logger() })
			for _, told := range []string{renews.Text(), starts.Text()} {
				line := fmt.Sprintf(`"msg":%q,"flag":"--tls-cert","expires":%d}`, c.told, int64(seconds(next.NotAfter)))
				same(t, line+" in "+told, strings.Contains(told, line), c.told != "")
				same(t, c.level+" in "+told, strings.Contains(told, fmt.Sprintf(`"level":%q`, c.level)), c.told != "")
				same(t, told, strings.Contains(told, "the certificate"), c.told != "")
			}
		})
	}
}
