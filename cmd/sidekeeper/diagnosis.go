package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// diagnosisTime bounds how long a command looks for the reason why it could not reach the sidecar.
const diagnosisTime = 2 * time.Second

// explain makes one line of an error, for people.
func (r *reach) explain(ctx context.Context) func(error) string {
	return func(err error) string { return exit.Explain(r.diagnosed(ctx, err), r.named(r.last)) }
}

// expired is what to do about this side's certificate if it has expired, which no waiting changes; empty if it has not.
func (r *reach) expired(config *tls.Config) string {
	if len(config.Certificates) == 0 || time.Now().Before(config.Certificates[0].Leaf.NotAfter) {
		return ""
	}
	return fmt.Sprintf("the certificate of --tls-cert %s expired on %s: renew it", r.certificate, instant(config.Certificates[0].Leaf.NotAfter))
}

// expiredAlert is what a sidecar answers a certificate that has expired by its clock.
const expiredAlert = "expired certificate"

// absent is told of each attempt that has failed while a command waits for the sidecar. It ends the command where the sidecar is there and
// refuses the certificate as expired: at once if it has, and otherwise when one of the two clocks has had the time to be set right.
func (r *reach) absent(err error) {
	if strings.Contains(err.Error(), "remote error: tls: "+expiredAlert) {
		config, failure := r.tlsConfig()
		if failure == nil && r.expired(config) != "" || r.refusals.last(time.Now()) {
			r.giveUp(err)
			return
		}
	}
	r.away.Failed(err)
}

// For refusals that last: how long that is, and how far one may be from the next.
const (
	lastingRefusals = 3 * time.Second
	refusalsApart   = 20 * time.Second
)

// Refusals are those of one certificate, one after the other.
type refusals struct {
	mu            sync.Mutex
	first, newest time.Time
}

// last takes in one more, and says whether they go on.
func (r *refusals) last(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.newest) > refusalsApart {
		r.first = now
	}
	r.newest = now
	return now.Sub(r.first) >= lastingRefusals
}

// diagnosed is err and, if the sidecar could not be reached because of TLS, what is wrong and what to do. It connects once more to find out.
func (r *reach) diagnosed(ctx context.Context, err error) error {
	unreached, is := errors.AsType[*sidekeeper.Error](err)
	if !is || unreached.Code != codes.Unavailable || unreached.Reason != "" {
		return err
	}
	path, isUnix := strings.CutPrefix(r.last, "unix://")
	if isUnix && !r.usesTLS() { // as it should be
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnosisTime)
	defer cancel()
	network, address := "tcp", r.last
	if isUnix {
		network, address = "unix", path
	}
	conn, failure := (&net.Dialer{}).DialContext(ctx, network, address)
	if failure != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if cause := r.mismatch(ctx, conn, address); cause != "" {
		return exit.Because(err, cause)
	}
	return err
}

// mismatch is what is wrong with a connection's TLS, on this side or on the other; empty if nothing is.
func (r *reach) mismatch(ctx context.Context, conn net.Conn, address string) string {
	if !r.usesTLS() {
		// A server of TLS answers this, as it answers each greeting; one without closes the connection, or says something else.
		trusting := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // the server is told nothing
		failure := tls.Client(conn, trusting).HandshakeContext(ctx)
		if failure == nil || alertIn(failure) != "" {
			return "it demands TLS: give --tls-ca, and --tls-cert with --tls-key"
		}
		return ""
	}
	config, failure := r.tlsConfig()
	if failure != nil {
		return ""
	}
	if config.ServerName, _, failure = net.SplitHostPort(address); failure != nil {
		config.ServerName = "localhost"
	}
	config.NextProtos = []string{"h2"}
	secure := tls.Client(conn, config)
	if failure = secure.HandshakeContext(ctx); failure == nil {
		_, failure = secure.Read(make([]byte, 1)) // a server judges the certificate after the handshake
	}
	return r.mismatchIn(failure, config)
}

// mismatchIn is what a failed handshake tells.
func (r *reach) mismatchIn(failure error, config *tls.Config) string {
	if plain, is := errors.AsType[tls.RecordHeaderError](failure); is || errors.Is(failure, io.EOF) {
		if strings.HasPrefix(string(plain.RecordHeader[:]), "HTTP") {
			return "what listens there does not answer as a gRPC server does"
		}
		return "it does not answer over TLS: leave out --tls-ca, --tls-cert and --tls-key"
	}
	if distrusted, is := errors.AsType[*tls.CertificateVerificationError](failure); is {
		return r.distrust(distrusted, config)
	}
	switch alert := alertIn(failure); {
	case alert == "":
		return ""
	case len(config.Certificates) == 0:
		return "it demands a client certificate: give --tls-cert and --tls-key"
	case alert == expiredAlert:
		if cause := r.expired(config); cause != "" {
			return cause
		}
		const rule = "compare the clocks, and renew what else has expired in that file"
		return fmt.Sprintf("it takes the certificate of --tls-cert %s for expired, which is valid until %s by this clock: %s",
			r.certificate, instant(config.Certificates[0].Leaf.NotAfter), rule)
	default:
		const rule = "a CA of its --tls-client-ca has to have signed it"
		return fmt.Sprintf("it refuses the certificate of --tls-cert %s (%s): %s", r.certificate, alert, rule)
	}
}

// distrust is why the sidecar's certificate is not trusted.
func (r *reach) distrust(failure *tls.CertificateVerificationError, config *tls.Config) string {
	shown := failure.UnverifiedCertificates[0]
	if otherName, is := errors.AsType[x509.HostnameError](failure); is {
		return fmt.Sprintf("its certificate is not for %s: call it by a name that is in its certificate", otherName.Host)
	}
	if invalid, is := errors.AsType[x509.CertificateInvalidError](failure); is && invalid.Reason == x509.Expired {
		if time.Now().After(shown.NotAfter) {
			return fmt.Sprintf("its certificate expired on %s: renew the --tls-cert of the sidecar", instant(shown.NotAfter))
		}
		return fmt.Sprintf("its certificate is valid from %s to %s: renew the --tls-cert of the sidecar",
			instant(shown.NotBefore), instant(shown.NotAfter))
	}
	if config.RootCAs == nil {
		return fmt.Sprintf("its certificate is of a CA that this machine does not trust, %q: give --tls-ca", shown.Issuer)
	}
	return fmt.Sprintf("no CA of --tls-ca %s has signed its certificate: that is of the CA %q", r.authority, shown.Issuer)
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// alertIn is what the other side said when it refused a handshake; empty if it did not.
func alertIn(failure error) string {
	refused, is := errors.AsType[*net.OpError](failure)
	if !is || refused.Op != "remote error" {
		return ""
	}
	return strings.TrimPrefix(refused.Err.Error(), "tls: ")
}
