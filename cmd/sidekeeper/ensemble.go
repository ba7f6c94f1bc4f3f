package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/certificate"
	"github.com/sidekeeper/sidekeeper/internal/reload"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
)

// An ensemble is the services' view of a zookeeper.Client.
type ensemble struct{ *zookeeper.Client }

// Open opens a session; see service.Ensemble.
func (e ensemble) Open(ctx context.Context, timeout time.Duration) (service.Session, error) {
	session, err := e.OpenPooled(ctx, timeout)
	if err != nil {
		return nil, err // and not a nil *Session in an interface
	}
	return session, nil
}

// reattach comes back to a session; see service.Resumption.
func (e ensemble) reattach(ctx context.Context, key recipes.SessionKey) (service.ReturnedSession, []recipes.Standing, error) {
	session, standing, err := e.Reattach(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	return session, standing, nil
}

// openEnsemble starts connecting, and makes the directories that are missing. The caller must close what it returns.
func (s *settings) openEnsemble(log *zap.Logger, metrics *server.Metrics, traces traces, directories []string) (ensemble, error) {
	auth, err := s.credentials(log)
	if err != nil {
		return ensemble{}, err
	}
	secure, err := s.ensembleTLS(log, metrics)
	if err != nil {
		return ensemble{}, err
	}
	identity, err := s.sasl.identity(log)
	if err != nil {
		return ensemble{}, err
	}
	config := s.zookeeperConfig()
	serves := len(directories) > 0
	config.Quotas, config.FollowServers = serves, serves && config.FollowServers
	config.Directories, config.Auth, config.TLS, config.Log = directories, auth, secure, log
	config.Observe, config.Late, config.Restored = traces.observer(metrics), metrics.HeartbeatLate, metrics.EnsembleRestored
	config.Denied, config.SASL = metrics.RequestDenied, identity
	client, err := zookeeper.New(config)
	return ensemble{client}, err
}

func (s *settings) zookeeperConfig() zookeeper.Config {
	config := s.ensemble
	config.Sleep = true
	config.Proof, config.EphemeralBytes = zookeeper.Proof(s.proof.String()), int(s.ephemeralBytes)
	return config
}

// validity is that of leases whose callers ask for no other time.
func (s *settings) validity() zookeeper.Validity {
	config := s.zookeeperConfig()
	return config.Validity(config.SessionTimeout)
}

// directories are where things lie; they are made if they are missing, and stay.
func (s *settings) directories() []string {
	return []string{
		s.root, s.place(s.lockRoot, "locks"), s.place(s.sequenceRoot, "sequences"), s.place(s.groupRoot, "groups"),
		s.place(s.semaphoreRoot, "semaphores"), s.place(s.queueRoot, "queues"), s.place(s.barrierRoot, "barriers"),
		s.place("", "agreements"), s.place("", "assignments"), s.place("", "once"), s.place("", "schedules"), s.place(s.configRoot, "config"),
	}
}

// place is where one kind of things lies: below the root unless told otherwise.
func (s *settings) place(elsewhere, kind string) string { return cmp.Or(elsewhere, s.root+"/"+kind) }

// maxCredentials is how many lines the file of --zookeeper-auth-file has at most: while they are rotated, two.
const maxCredentials = 10

// credentials reads lines of `user:password` from their file, now and whenever they are asked for; nil if there is none.
func (s *settings) credentials(log *zap.Logger) (func() [][]byte, error) {
	if s.authFile == "" {
		return nil, nil
	}
	const flag = "--zookeeper-auth-file"
	kept, err := reload.Open(func(contents [][]byte) ([][]byte, error) {
		return s.parseCredentials(contents[0])
	}, reportTo[[][]byte](log, flag), s.authFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return kept.Newest, nil
}

func (s *settings) parseCredentials(content []byte) (credentials [][]byte, err error) {
	for line := range bytes.Lines(content) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			continue
		}
		if user, _, found := bytes.Cut(line, []byte(":")); !found || len(user) == 0 {
			return nil, fmt.Errorf("%s: user:password on each line", s.authFile)
		}
		credentials = append(credentials, line)
	}
	if len(credentials) == 0 || len(credentials) > maxCredentials {
		return nil, fmt.Errorf("%s: has %d lines with user:password: from 1 to %d", s.authFile, len(credentials), maxCredentials)
	}
	return credentials, nil
}

// ensembleTLS is TLS towards the ensemble, nil for none. Its files are read at each connection, so that they can be renewed.
func (s *settings) ensembleTLS(log *zap.Logger, metrics *server.Metrics) (func() *tls.Config, error) {
	if s.tlsCA == "" {
		return nil, nil
	}
	files, flags := []string{s.tlsCA}, "--zookeeper-tls-ca"
	if s.tlsCert != "" {
		files, flags = append(files, s.tlsCert, s.tlsKey), flags+", --zookeeper-tls-cert, --zookeeper-tls-key"
	}
	newest, err := metrics.KeepCertificate("ensemble", "--zookeeper-tls-cert", log, s.parseTLS, reportTo[*tls.Config](log, flags), files...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flags, err)
	}
	return newest, nil
}

// parseTLS makes a configuration of the authorities' certificates and, if there is one, ours with its key.
func (s *settings) parseTLS(contents [][]byte) (*tls.Config, error) {
	authorities, err := certificate.Pool(contents[0], s.tlsCA)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities, ServerName: s.tlsServerName}
	if err != nil || len(contents) == 1 {
		return config, err
	}
	own, err := certificate.Pair{Certificate: contents[1], Key: contents[2]}.Load(s.tlsCert, s.tlsKey)
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{*own}
	return config, nil
}

// reportTo has the log say what becomes of the files that flags name.
func reportTo[T any](log *zap.Logger, flags string) func(T, error) {
	return func(_ T, trouble error) {
		if trouble == nil {
			log.Info("files reloaded", zap.String("flag", flags))
			return
		}
		log.Error("files not reloaded; what they last held is used", zap.String("flag", flags), zap.Error(trouble))
	}
}
