package main

import "github.com/spf13/pflag"

// A settingGroup is settings that are about the same thing, in the help and in the documents.
type settingGroup struct {
	title string
	flags []string
}

// settingGroups are all settings of the sidecar.
var settingGroups = []settingGroup{
	{"Listening", []string{"listen", "socket-mode", "operator-listen", "metrics-listen", "admin-listen"}},
	{"TLS and authorization", []string{"tls-cert", "tls-key", "tls-client-ca", "tls-trust-domain", "policy"}},
	{"The ensemble", []string{
		"zookeeper", "tick-time", "sync-limit", "behind-observers", "follow-ensemble", "zookeeper-auth-file", "zookeeper-tls-ca",
		"zookeeper-tls-cert", "zookeeper-tls-key", "zookeeper-tls-server-name",
	}},
	{"Leases", []string{"session-timeout", "heartbeat", "proof"}},
	{"Storage paths", []string{
		"root", "lock-root", "sequence-root", "group-root", "config-root", "lock-layout", "acl",
	}},
	{"Limits", []string{
		"max-leases", "max-waiters", "max-watched", "max-children", "max-streams", "max-connections", "max-memory", "ephemeral-bytes",
	}},
	{"Keepalive and shutdown", []string{"keepalive-time", "keepalive-timeout", "drain-timeout"}},
	{"Logs, traces and other settings", []string{"log-level", "log-format", "audit-log", "otlp-endpoint", "trace-ratio", "strict", "reflection"}},
}

// of takes the group's flags out of a set, those that it has.
func (s settingGroup) of(flags *pflag.FlagSet) *pflag.FlagSet {
	taken := pflag.NewFlagSet(s.title, pflag.ContinueOnError)
	taken.SortFlags = false
	for _, name := range s.flags {
		if flag := flags.Lookup(name); flag != nil {
			taken.AddFlag(flag)
		}
	}
	return taken
}
