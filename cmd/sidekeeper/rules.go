package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/tracing"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A rule is what a setting must obey.
type rule struct {
	flag   string
	value  any
	obeyed bool
	text   string
}

// check finds the first setting that breaks a rule. What only the parts themselves can judge, such as whether a
// session timeout can be proved, they judge when they are made.
func (s *settings) check() error {
	for _, rule := range s.rules() {
		if err := rule.broken(); err != nil {
			return err
		}
	}
	return nil
}

// broken says what is wrong, unless the rule is obeyed.
func (r rule) broken() error {
	if r.obeyed {
		return nil
	}
	return fmt.Errorf("--%s %v: %s", r.flag, r.value, r.text)
}

// pathRules are those of the paths that may be elsewhere than below the root.
func (s *settings) pathRules() (rules []rule) {
	for _, each := range []struct{ flag, path string }{
		{"lock-root", s.lockRoot},
		{"sequence-root", s.sequenceRoot},
		{"group-root", s.groupRoot},
		{"semaphore-root", s.semaphoreRoot},
		{"queue-root", s.queueRoot},
		{"barrier-root", s.barrierRoot},
		{"config-root", s.configRoot},
	} {
		rules = append(rules, rule{each.flag, each.path, each.path == "" || isNodePath(each.path), nodePathRule})
	}
	return rules
}

func (s *settings) rules() []rule {
	rules := []rule{
		{"listen", s.server.Listen, len(s.server.Listen) > 0, "at least one client listen address is required"},
		{"zookeeper", s.ensemble.Servers, len(s.ensemble.Servers) > 0, "the ensemble's servers, as host:port,…, are required"},
		{"root", s.root, isNodePath(s.root), nodePathRule},
		{"tick-time", s.ensemble.TickTime, s.ensemble.TickTime > 0, positiveRule},
		{"sync-limit", s.ensemble.SyncLimit, s.ensemble.SyncLimit > 0, positiveRule},
		{"tick-time", s.ensemble.TickTime, s.ensemble.TickTime <= time.Hour, "at most 1h"},
		{"sync-limit", s.ensemble.SyncLimit, s.ensemble.SyncLimit <= 10000, "at most 10000"},
		{"heartbeat", s.ensemble.Heartbeat, s.ensemble.Heartbeat > 0, positiveRule},
		clockToleranceRule(s.service.ClockTolerance),
		{"session-timeout", s.ensemble.SessionTimeout, s.ensemble.SessionTimeout <= recipes.LongestTimeout, dayRule},
		{
			"session-timeout", s.ensemble.SessionTimeout, s.ensemble.SessionTimeout >= 2*s.ensemble.TickTime,
			"an ensemble grants no less than two ticks",
		},
		{"ephemeral-bytes", s.ephemeralBytes.String(), s.ephemeralBytes >= 1<<10, "at least 1KiB, or no lock fits"},
		{"max-leases", s.service.MostLeases, s.service.MostLeases > 0, positiveRule},
		{"max-waiters", s.service.MostWaiters, s.service.MostWaiters > 0, positiveRule},
		{"max-watched", s.service.MostWatched, s.service.MostWatched > 0, positiveRule},
		{"max-children", s.ensemble.MaxChildren, s.ensemble.MaxChildren > 0, positiveRule},
		{"max-streams", s.server.MaxStreams, s.server.MaxStreams > 0 && s.server.MaxStreams <= 1<<20, "between 1 and 1048576"},
		{"max-connections", s.server.MaxConnections, s.server.MaxConnections > 0, positiveRule},
		{"max-memory", s.maxMemory.String(), s.maxMemory >= 16<<20, "at least 16MiB"},
		{"keepalive-time", s.server.KeepaliveTime, s.server.KeepaliveTime >= time.Second, secondRule},
		{"keepalive-timeout", s.server.KeepaliveTimeout, s.server.KeepaliveTimeout >= time.Second, secondRule},
		{"sigterm", s.sigterm.String(), !s.handsOver() || s.stateDir != "", "needs --state-dir"},
		{"drain-timeout", s.server.DrainTimeout, s.server.DrainTimeout >= 0, "at least 0"},
		{"drain-timeout", s.server.DrainTimeout, s.server.DrainTimeout <= maxDuration, dayRule},
		{"audit-log", s.auditLog, isAuditLog(s.auditLog), "stderr, off, or the absolute path of a file"},
		{"audit-log-strict", s.auditStrict, !s.auditStrict || s.auditLog != auditOff, "needs an --audit-log other than off"},
		{"otlp-endpoint", s.otlpEndpoint, s.otlpEndpoint == "" || tracing.IsEndpoint(s.otlpEndpoint), tracing.EndpointRule},
		{"trace-ratio", s.traceRatio, s.traceRatio >= 0 && s.traceRatio <= 1, "between 0 and 1"},
		{"tls-trust-domain", s.server.TrustDomains, len(s.server.TrustDomains) == 0 || s.server.TLS.Certificate != "", "needs --tls-cert"},
		{
			"admin-listen", s.server.AdminListen,
			s.server.Policy == "" || s.server.AdminListen == "" || strings.HasPrefix(s.server.AdminListen, "unix:"),
			"with a --policy only a Unix socket, as unix:///path: any user of the machine may connect to a port",
		},
		{"http-token-file", s.server.HTTPTokenFile, s.server.HTTPTokenFile == "" || s.server.HTTPListen != "", "needs --http-listen"},
		{"zookeeper-tls-cert", s.tlsCert, (s.tlsCert == "") == (s.tlsKey == ""), "goes together with --zookeeper-tls-key"},
		{"zookeeper-tls-cert", s.tlsCert, s.tlsCert == "" || s.tlsCA != "", "needs --zookeeper-tls-ca, which switches TLS on"},
		{"zookeeper-tls-server-name", s.tlsServerName, s.tlsServerName == "" || s.tlsCA != "", "needs --zookeeper-tls-ca"},
	}
	for _, server := range s.ensemble.Servers {
		rules = append(rules, rule{"zookeeper", server, isHostPort(server), serverRule})
	}
	return slices.Concat(rules, s.sasl.rules(), s.pathRules())
}

func clockToleranceRule(tolerance time.Duration) rule {
	return rule{"clock-tolerance", tolerance, tolerance >= time.Minute && tolerance <= maxDuration, "from 1m to 24h"}
}

// maxDuration is longer than any caller means, and short enough to reckon with.
const maxDuration = 24 * time.Hour

const (
	positiveRule = "more than 0"
	dayRule      = "at most 24h"
	secondRule   = "at least 1s"
	serverRule   = "a server is host:port, with a port of 1 to 65535 and no path, for which there is --root"
	nodePathRule = "an absolute path in the ensemble, without empty, . or .. segments, and not below /zookeeper"
)

func isHostPort(server string) bool {
	host, port, err := net.SplitHostPort(server)
	number, notANumber := strconv.ParseUint(port, 10, 16)
	return err == nil && host != "" && notANumber == nil && number > 0
}

func isNodePath(path string) bool {
	below, absolute := strings.CutPrefix(path, "/")
	segments := strings.Split(below, "/")
	for _, segment := range segments {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return absolute && segments[0] != "zookeeper"
}
