package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/sidekeeper/sidekeeper/internal/certificate"
)

// TLSFiles are what a listener beyond this machine needs, all PEM: its certificate with the chain, the key of that, and
// the authorities whose client certificates it accepts. The files may be replaced at any time: new connections use the new
// ones, open ones go on.
type TLSFiles struct{ Certificate, Key, ClientCA string }

// complete says whether all three are named; some but not all is an error.
func (f TLSFiles) complete() (bool, error) {
	if f == (TLSFiles{}) {
		return false, nil
	}
	if f.Certificate == "" || f.Key == "" || f.ClientCA == "" {
		return false, errors.New("--tls-cert, --tls-key and --tls-client-ca go together: all three or none")
	}
	return true, nil
}

// openTLS is what listeners need of the files; nil if there are none. Later versions that cannot be read or do not fit together are logged and
// the last good ones used.
func (o Options) openTLS() (*tls.Config, error) {
	files, log := o.TLS, o.Log
	if complete, err := files.complete(); err != nil || !complete {
		return nil, err
	}
	domains, err := parseTrustDomains(o.TrustDomains)
	if err != nil {
		return nil, err
	}
	names := []string{files.Certificate, files.Key, files.ClientCA}
	for _, domain := range domains {
		names = append(names, domain.file)
	}
	parse := func(contents [][]byte) (*tls.Config, error) { return files.load(contents, domains) }
	newest, err := o.Metrics.KeepCertificate("callers", "--tls-cert", log, parse, func(_ *tls.Config, trouble error) {
		if trouble != nil {
			log.Error("TLS files not reloaded; the last valid ones are used", zap.Error(trouble))
		}
	}, names...)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key, --tls-client-ca: %w", err)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return newest(), nil },
	}, nil
}

// mostCauses is how many causes the log tells apart of connections that are refused.
const mostCauses = 16

// misled has the log say, at most once a minute for each cause, that a connection begins as no caller's does: without TLS where there is TLS
// or the reverse, without a certificate, with one that is not trusted, or in another protocol. One that ends before it begins is a probe's.
func misled(log *zap.Logger) func(peer net.Addr, trouble error) {
	var mu sync.Mutex
	causes := map[string]*rate.Sometimes{}
	return func(peer net.Addr, trouble error) {
		if errors.Is(trouble, io.EOF) || errors.Is(trouble, syscall.ECONNRESET) {
			return
		}
		if _, plain := errors.AsType[tls.RecordHeaderError](trouble); plain {
			trouble = errBeginsWithoutTLS
		}
		mu.Lock()
		cause := causeOf(trouble)
		if causes[cause] == nil && len(causes) >= mostCauses {
			cause = ""
		}
		if causes[cause] == nil {
			causes[cause] = &rate.Sometimes{Interval: time.Minute}
		}
		now := causes[cause]
		mu.Unlock()
		now.Do(func() { log.Warn("connection refused", zap.Stringer("peer", peer), zap.Error(trouble)) })
	}
}

// causeOf is what errors have in common that are told as one: their kind, or a text that does not change.
func causeOf(trouble error) string {
	for inner := errors.Unwrap(trouble); inner != nil; inner = errors.Unwrap(trouble) {
		trouble = inner
	}
	if kind := fmt.Sprintf("%T", trouble); kind != "*errors.errorString" {
		return kind
	}
	return trouble.Error()
}

var errBeginsWithoutTLS = errors.New("the caller does not speak TLS, and this listener demands it")

func (f TLSFiles) load(contents [][]byte, domains []trustDomain) (*tls.Config, error) {
	own, err := certificate.Pair{Certificate: contents[0], Key: contents[1]}.Load(f.Certificate, f.Key)
	if err != nil {
		return nil, err
	}
	all, err := certificate.Pool(contents[2], f.ClientCA)
	if err != nil {
		return nil, err
	}
	trusted := trust{all.Clone(), map[string]*x509.CertPool{}}
	for i, authorities := range contents[3:] {
		if trusted.bound[domains[i].name], err = certificate.Pool(authorities, domains[i].file); err != nil {
			return nil, err
		}
		all.AppendCertsFromPEM(authorities)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2"},
		Certificates: []tls.Certificate{*own},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    all,
		// A resumed session would be one that the authorities of today have not verified.
		SessionTicketsDisabled: true,
	}
	if len(domains) > 0 {
		config.VerifyConnection = trusted.verify
	}
	return config, nil
}
