package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/service"
)

// An ensemble is the services' view of a zookeeper.Client.
type ensemble struct{ *zookeeper.Client }

// Open opens a session; see service.Ensemble.
func (e ensemble) Open(ctx context.Context, timeout time.Duration) (service.Session, error) {
	session, err := e.Client.Open(ctx, timeout)
	if err != nil {
		return nil, err // and not a nil *Session in an interface
	}
	return session, nil
}

// openEnsemble starts connecting, and makes the directories that are missing. The caller must close what it returns.
func (s *settings) openEnsemble(log *zap.Logger, metrics *service.Metrics, directories []string) (ensemble, error) {
	auth, err := s.credentials()
	if err != nil {
		return ensemble{}, err
	}
	secure, err := s.ensembleTLS()
	if err != nil {
		return ensemble{}, err
	}
	client, err := zookeeper.New(zookeeper.Config{
		Servers:        s.zookeeper,
		SessionTimeout: s.sessionTimeout,
		TickTime:       s.tickTime,
		SyncLimit:      s.syncLimit,
		Heartbeat:      s.heartbeat,
		Proof:          zookeeper.Proof(s.proof.String()),
		Observers:      s.behindObservers,
		Directories:    directories,
		Auth:           auth,
		TLS:            secure,
		ACL:            s.acl,
		EphemeralBytes: int(s.ephemeralBytes),
		Log:            log,
		Observe:        metrics.RequestDone,
		Late:           metrics.HeartbeatLate,
	})
	return ensemble{client}, err
}

// directories are where things lie; they are made if they are missing, and stay.
func (s *settings) directories() []string {
	return []string{
		s.root, s.place(s.lockRoot, "locks"), s.place(s.sequenceRoot, "sequences"), s.place(s.groupRoot, "groups"),
		s.place(s.configRoot, "config"),
	}
}

// place is where one kind of things lies: below the root unless told otherwise.
func (s *settings) place(elsewhere, kind string) string { return cmp.Or(elsewhere, s.root+"/"+kind) }

// credentials reads `user:password` from its file.
func (s *settings) credentials() ([]byte, error) {
	if s.authFile == "" {
		return nil, nil
	}
	content, err := os.ReadFile(s.authFile)
	if err != nil {
		return nil, fmt.Errorf("--zookeeper-auth-file: %w", err)
	}
	line := bytes.TrimRight(content, "\r\n")
	if user, _, found := bytes.Cut(line, []byte(":")); !found || len(user) == 0 || bytes.ContainsAny(line, "\r\n") {
		return nil, fmt.Errorf("--zookeeper-auth-file %s: one line with user:password", s.authFile)
	}
	return line, nil
}

// ensembleTLS is TLS towards the ensemble, or nil. The certificate is read at each connection, so that it can be renewed.
func (s *settings) ensembleTLS() (*tls.Config, error) {
	if s.tlsCA == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(s.tlsCA)
	if err != nil {
		return nil, fmt.Errorf("--zookeeper-tls-ca: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: s.tlsServerName}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--zookeeper-tls-ca %s: no certificate in it", s.tlsCA)
	}
	if s.tlsCert == "" {
		return config, nil
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return s.clientCertificate() }
	if _, err := s.clientCertificate(); err != nil {
		return nil, fmt.Errorf("--zookeeper-tls-cert: %w", err)
	}
	return config, nil
}

func (s *settings) clientCertificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(s.tlsCert, s.tlsKey)
	return &pair, err
}
