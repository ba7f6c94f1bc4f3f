package main

import (
	"fmt"
	"net"
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
		if !rule.obeyed {
			return fmt.Errorf("--%s %v: %s", rule.flag, rule.value, rule.text)
		}
	}
	return nil
}

func (s *settings) rules() []rule {
	rules := []rule{
		{"listen", s.listen, len(s.listen) > 0, "at least one client listen address is required"},
		{"zookeeper", s.zookeeper, len(s.zookeeper) > 0, "the ensemble's servers, as host:port,…, are required"},
		{"root", s.root, isNodePath(s.root), nodePathRule},
		{"lock-root", s.lockRoot, s.lockRoot == "" || isNodePath(s.lockRoot), nodePathRule},
		{"sequence-root", s.sequenceRoot, s.sequenceRoot == "" || isNodePath(s.sequenceRoot), nodePathRule},
		{"group-root", s.groupRoot, s.groupRoot == "" || isNodePath(s.groupRoot), nodePathRule},
		{"config-root", s.configRoot, s.configRoot == "" || isNodePath(s.configRoot), nodePathRule},
		{"tick-time", s.tickTime, s.tickTime > 0, positiveRule},
		{"sync-limit", s.syncLimit, s.syncLimit > 0, positiveRule},
		{"tick-time", s.tickTime, s.tickTime <= time.Hour, "at most 1h"},
		{"sync-limit", s.syncLimit, s.syncLimit <= 10000, "at most 10000"},
		{"heartbeat", s.heartbeat, s.heartbeat > 0, positiveRule},
		{"session-timeout", s.sessionTimeout, s.sessionTimeout <= recipes.LongestTimeout, dayRule},
		{"session-timeout", s.sessionTimeout, s.sessionTimeout >= 2*s.tickTime, "an ensemble grants no less than two ticks"},
		{"ephemeral-bytes", s.ephemeralBytes.String(), s.ephemeralBytes >= 1<<10, "at least 1KiB, or no lock fits"},
		{"max-leases", s.maxLeases, s.maxLeases > 0, positiveRule},
		{"max-waiters", s.maxWaiters, s.maxWaiters > 0, positiveRule},
		{"max-watched", s.maxWatched, s.maxWatched > 0, positiveRule},
		{"max-streams", s.maxStreams, s.maxStreams > 0 && s.maxStreams <= 1<<20, "between 1 and 1048576"},
		{"max-connections", s.maxConnections, s.maxConnections > 0, positiveRule},
		{"max-memory", s.maxMemory.String(), s.maxMemory >= 16<<20, "at least 16MiB"},
		{"keepalive-time", s.keepaliveTime, s.keepaliveTime >= time.Second, secondRule},
		{"keepalive-timeout", s.keepaliveTimeout, s.keepaliveTimeout >= time.Second, secondRule},
		{"drain-timeout", s.drainTimeout, s.drainTimeout >= 0, "not negative"},
		{"drain-timeout", s.drainTimeout, s.drainTimeout <= maxDuration, dayRule},
		{"audit-log", s.auditLog, isAuditLog(s.auditLog), "stderr, off, or the absolute path of a file"},
		{"otlp-endpoint", s.otlpEndpoint, s.otlpEndpoint == "" || tracing.IsEndpoint(s.otlpEndpoint), tracing.EndpointRule},
		{"trace-ratio", s.traceRatio, s.traceRatio >= 0 && s.traceRatio <= 1, "between 0 and 1"},
		{"zookeeper-tls-cert", s.tlsCert, (s.tlsCert == "") == (s.tlsKey == ""), "goes together with --zookeeper-tls-key"},
		{"zookeeper-tls-cert", s.tlsCert, s.tlsCert == "" || s.tlsCA != "", "needs --zookeeper-tls-ca, which switches TLS on"},
		{"zookeeper-tls-server-name", s.tlsServerName, s.tlsServerName == "" || s.tlsCA != "", "needs --zookeeper-tls-ca"},
	}
	for _, server := range s.zookeeper {
		rules = append(rules, rule{"zookeeper", server, isHostPort(server), serverRule})
	}
	return rules
}

// maxDuration is longer than anybody means, and short enough to reckon with.
const maxDuration = 24 * time.Hour

const (
	positiveRule = "more than nothing"
	dayRule      = "at most 24h"
	secondRule   = "at least 1s"
	serverRule   = "a server is host:port, with a port of 1 to 65535 and no path behind it; --root says below which node everything lies"
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
