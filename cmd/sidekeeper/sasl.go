package main

import (
	"bytes"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/reload"
	"github.com/sidekeeper/sidekeeper/internal/sasl"
)

// saslSettings are how the sidecar and the ensemble prove to each other who they are.
type saslSettings struct {
	mechanism    choice
	principal    string
	keytab       string
	config       string
	service      string
	passwordFile string
}

// The words of --zookeeper-sasl, and what servers are called unless settings say otherwise.
const (
	saslNone     = "none"
	saslKerberos = "gssapi"
	saslDigest   = "digest-md5"
	saslService  = "zookeeper"
)

// saslFlags are all settings for SASL.
var saslFlags = []string{
	"zookeeper-sasl", "zookeeper-sasl-principal", "zookeeper-sasl-keytab", "zookeeper-sasl-kerberos-config", "zookeeper-sasl-service",
	"zookeeper-sasl-password-file",
}

func (s *saslSettings) uses(mechanism string) bool { return s.mechanism.String() == mechanism }

// rules are those of the settings for SASL.
func (s *saslSettings) rules() []rule {
	const kerberos, form = "needs --zookeeper-sasl gssapi", "a principal is NAME or NAME/HOST, each with or without @REALM"
	rules := []rule{
		{"zookeeper-sasl", saslDigest, !s.uses(saslDigest) || s.passwordFile != "", "needs --zookeeper-sasl-password-file"},
		{"zookeeper-sasl-password-file", s.passwordFile, s.passwordFile == "" || s.uses(saslDigest), "needs --zookeeper-sasl digest-md5"},
		{"zookeeper-sasl-keytab", s.keytab, s.keytab == "" || s.principal != "", "needs --zookeeper-sasl-principal"},
		{"zookeeper-sasl-principal", s.principal, s.principal == "" || sasl.IsPrincipal(s.principal), form},
		{"zookeeper-sasl-service", s.service, sasl.IsPrincipal(s.service), form},
		{"zookeeper-sasl-service", s.service, !strings.Contains(s.service, "_HOST"), "instead of NAME/_HOST, give NAME"},
	}
	for _, each := range []struct{ flag, value, unset string }{
		{"zookeeper-sasl-principal", s.principal, ""},
		{"zookeeper-sasl-keytab", s.keytab, ""},
		{"zookeeper-sasl-kerberos-config", s.config, ""},
		{"zookeeper-sasl-service", s.service, saslService},
	} {
		rules = append(rules, rule{each.flag, each.value, each.value == each.unset || s.uses(saslKerberos), kerberos})
	}
	return rules
}

// identity is who the sidecar is to the ensemble; nil for none.
func (s *saslSettings) identity(log *zap.Logger) (sasl.Identity, error) {
	switch {
	case s.uses(saslKerberos):
		identity, err := sasl.NewKerberos(sasl.Kerberos{Principal: s.principal, Keytab: s.keytab, Config: s.config, Service: s.service})
		if err != nil {
			return nil, fmt.Errorf("--zookeeper-sasl gssapi: %w", err)
		}
		return identity, nil
	case s.uses(saslDigest):
		return s.digest(log)
	}
	return nil, nil
}

// secrets are the files that prove who the sidecar is, by flag without its dashes. Tickets of kinit are such, too.
func (s *saslSettings) secrets() map[string]string {
	files := map[string]string{"zookeeper-sasl-keytab": s.keytab, "zookeeper-sasl-password-file": s.passwordFile}
	if s.uses(saslKerberos) && s.keytab == "" {
		if path, err := sasl.CachePath(); err == nil { // or there is no ticket, which the ensemble's findings tell
			files["zookeeper-sasl"] = path
		}
	}
	return files
}

// A login is a user and a password.
type login struct{ user, password string }

// digest is the identity of the user in the file, with the password that is there at each exchange.
func (s *saslSettings) digest(log *zap.Logger) (sasl.Identity, error) {
	kept, err := s.keepLogin(log)
	if err != nil {
		return nil, err
	}
	return sasl.NewDigest(kept.Last().user, func() string { return kept.Newest().password }), nil
}

// keepLogin reads the file. The user stays, since nodes are the user's.
func (s *saslSettings) keepLogin(log *zap.Logger) (*reload.Files[login], error) {
	const flag = "--zookeeper-sasl-password-file"
	first := ""
	kept, err := reload.Open(func(contents [][]byte) (login, error) {
		found, err := s.parseLogin(contents[0])
		switch {
		case err != nil:
			return login{}, err
		case first == "":
			first = found.user
		case found.user != first:
			return login{}, fmt.Errorf("%s: the user is no longer %s: start the sidecar again", s.passwordFile, first)
		}
		return found, nil
	}, reportTo[login](log, flag), s.passwordFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return kept, nil
}

func (s *saslSettings) parseLogin(content []byte) (login, error) {
	line, more, _ := bytes.Cut(bytes.TrimRight(content, "\r\n"), []byte("\n"))
	user, password, found := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(":"))
	if !found || len(user) == 0 || len(password) == 0 || len(more) > 0 {
		return login{}, fmt.Errorf("%s: one line with user:password", s.passwordFile)
	}
	return login{string(user), string(password)}, nil
}
