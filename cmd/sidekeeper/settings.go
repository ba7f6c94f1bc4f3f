package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/service"
)

// settings are what `sidekeeper serve` is told.
type settings struct {
	// What flags say of the sidecar's parts. The rest of their options is made of what follows.
	server   server.Options
	service  service.Options
	ensemble zookeeper.Config

	socketMode     fileMode
	maxMemory      byteCount
	ephemeralBytes byteCount

	stateDir string
	sigterm  choice

	proof         choice
	authFile      string
	tlsCA         string
	tlsCert       string
	tlsKey        string
	tlsServerName string
	sasl          saslSettings

	root          string
	lockRoot      string
	sequenceRoot  string
	groupRoot     string
	semaphoreRoot string
	queueRoot     string
	barrierRoot   string
	configRoot    string
	lockLayout    choice
	elections     choice

	logLevel     choice
	logFormat    choice
	auditLog     string
	auditStrict  bool
	otlpEndpoint string
	traceRatio   float64
	strict       bool
}

// Of schedules, for serve and dev.
const (
	usualTolerance     = 2 * time.Hour
	clockToleranceHelp = "how far the clocks of the ensemble and of this machine may be apart, from 1m to 24h. If they are further apart, the sidecar begins no tick of a schedule"
)

// flags is every setting, with its name, default and help.
func (s *settings) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.SortFlags = false
	f.Var(listOf(&s.server.Listen, "unix:///run/sidekeeper/sidekeeper.sock"), "listen", "client listen addresses: `unix:///path`, a loopback host:port, or any host:port with TLS; repeatable. All clients of unix:///path?identity=NAME share one identity, socket:NAME")
	f.Var(preset(&s.socketMode, 0o660), "socket-mode", "file mode of the clients' Unix sockets")
	f.StringVar(&s.server.HTTPListen, "http-listen", "", "listen address of the API over HTTP with JSON, as `host:port`: loopback with --http-token-file, or any with TLS. It has no held streams. Empty disables it")
	f.StringVar(&s.server.HTTPTokenFile, "http-token-file", "", "`file` with the token that clients over HTTP show as Authorization: Bearer, of at least 16 characters; reloaded when it changes. --http-listen is then a loopback address without TLS")
	f.StringVar(&s.server.OperatorListen, "operator-listen", "unix:///run/sidekeeper/operator.sock", "operator listen address: `unix:///path` of a socket for root and the sidecar's user only; empty disables it")
	f.StringVar(&s.server.MetricsListen, "metrics-listen", "", "listen address (HTTP) of /metrics, /healthz and /readyz, as `host:port`; empty disables it")
	f.StringVar(&s.server.AdminListen, "admin-listen", "", "listen address (HTTP) of the status page, the data for sidekeeper top, and profiles, as a loopback `host:port` or unix:///path; empty disables it")
	f.StringVar(&s.server.TLS.Certificate, "tls-cert", "", "`file` with the server certificate for clients over TCP, and its chain; requires --tls-key and --tls-client-ca; reloaded when it changes")
	f.StringVar(&s.server.TLS.Key, "tls-key", "", "`file` with that certificate's key; reloaded when it changes")
	f.StringVar(&s.server.TLS.ClientCA, "tls-client-ca", "", "`file` with the CA certificates of client certificates, which every client over TCP then needs; reloaded when it changes")
	f.Var(listOf(&s.server.TrustDomains), "tls-trust-domain", "a SPIFFE trust domain with CA certificates of its own, as `DOMAIN=FILE`; repeatable; reloaded when they change. These certificates alone vouch for its identities, and for no others")

	f.StringVar(&s.server.Policy, "policy", "", "`file` with authorization rules and limits for the client listeners; reloaded when it changes. What no rule allows is denied. Without a policy, clients may call everything that is not for operators")
	f.Var(listOf(&s.ensemble.Servers).ofWords(), "zookeeper", "the ensemble's servers, `host:port,…`; required")
	f.DurationVar(&s.ensemble.SessionTimeout, "session-timeout", 15*time.Second, "how long a lease survives without the ensemble, unless its client requests another value. If it is too short for a liveness proof, the sidecar does not start")
	f.DurationVar(&s.ensemble.TickTime, "tick-time", 2*time.Second, "tickTime of the ensemble; a value smaller than the real one is unsafe")
	f.IntVar(&s.ensemble.SyncLimit, "sync-limit", 5, "syncLimit of the ensemble; a value smaller than the real one is unsafe")
	f.DurationVar(&s.ensemble.Heartbeat, "heartbeat", 2*time.Second, "interval between the heartbeats that prove a lease alive")
	f.Var(choose(&s.proof, "quorum", "static"), "proof", "liveness proof: by committed transactions (quorum), or by the ensemble's limits alone (static), which requires long session timeouts")
	f.BoolVar(&s.ensemble.Observers, "behind-observers", false, "whether servers of the ensemble are observers behind others")
	f.BoolVar(&s.ensemble.FollowServers, "follow-ensemble", true, "whether leases follow the ensemble's own list of its servers, as reconfigurations change it. Choose false if clients reach its servers only through a proxy")
	f.DurationVar(&s.service.ClockTolerance, "clock-tolerance", usualTolerance, clockToleranceHelp)
	f.StringVar(&s.authFile, "zookeeper-auth-file", "", "`file` with user:password for the ensemble's digest scheme, on one line, or on up to 10 lines while they are rotated; reloaded when it changes")
	f.StringVar(&s.tlsCA, "zookeeper-tls-ca", "", "`file` with the CA certificates of the ensemble; enables TLS to it; reloaded when it changes")
	f.StringVar(&s.tlsCert, "zookeeper-tls-cert", "", "`file` with the client certificate for the ensemble; reloaded when it changes")
	f.StringVar(&s.tlsKey, "zookeeper-tls-key", "", "`file` with that certificate's key; reloaded when it changes")
	f.StringVar(&s.tlsServerName, "zookeeper-tls-server-name", "", "`name` in the ensemble's certificates, if it is not the host's")
	f.Var(choose(&s.sasl.mechanism, saslNone, saslKerberos, saslDigest), "zookeeper-sasl", "mechanism of SASL by which the sidecar and the ensemble prove to each other who they are; gssapi is Kerberos")
	f.StringVar(&s.sasl.principal, "zookeeper-sasl-principal", "", "the sidecar's Kerberos `principal`, such as sidekeeper@EXAMPLE.COM; required with --zookeeper-sasl-keytab")
	f.StringVar(&s.sasl.keytab, "zookeeper-sasl-keytab", "", "`file` with the principal's keys, read at each login. Empty: the ticket that kinit has put into $KRB5CCNAME")
	f.StringVar(&s.sasl.config, "zookeeper-sasl-kerberos-config", "", "`file` like /etc/krb5.conf, read at each login. Empty: $KRB5_CONFIG, else /etc/krb5.conf")
	f.StringVar(&s.sasl.service, "zookeeper-sasl-service", saslService, "the servers' Kerberos `principal`: NAME, NAME/HOST or NAME/HOST@REALM. To NAME alone, the sidecar adds each server's host in --zookeeper")
	f.StringVar(&s.sasl.passwordFile, "zookeeper-sasl-password-file", "", "`file` with user:password for --zookeeper-sasl digest-md5; reloaded when it changes. A changed user needs a restart")

	f.StringVar(&s.stateDir, "state-dir", "", "`directory` for lease state (preferably tmpfs), so that clients keep their locks across a restart of the sidecar. No other process may use it. Empty: a restart loses the locks")

	f.StringVar(&s.root, "root", "/sidekeeper", "`path` in the ensemble below which all data is stored; one per fleet of sidecars")
	f.StringVar(&s.lockRoot, "lock-root", "", "`path` of the locks, to share them with other clients; empty for locks below the root")
	f.StringVar(&s.sequenceRoot, "sequence-root", "", "`path` of the sequences, to share them with other clients; empty for sequences below the root")
	f.StringVar(&s.groupRoot, "group-root", "", "`path` of the groups, to share them with other clients; empty for groups below the root")
	f.StringVar(&s.semaphoreRoot, "semaphore-root", "", "`path` of the semaphores, to share them with other clients; empty for semaphores below the root")
	f.StringVar(&s.queueRoot, "queue-root", "", "`path` of the queues, to share them with other clients; empty for queues below the root")
	f.StringVar(&s.barrierRoot, "barrier-root", "", "`path` of the barriers, to share them with other clients; empty for barriers below the root")
	f.StringVar(&s.configRoot, "config-root", "", "`path` of the configuration, to share it with other clients; empty for config below the root")
	f.Var(choose(&s.elections, "selector", "latch"), "election-layout", "how the places of candidates are named: like those of locks and of Curator's LeaderSelector (selector), or like those of its LeaderLatch (latch)")
	f.Var(choose(&s.lockLayout, "flat", "nested"), "lock-layout", "how lock names with slashes are stored: as one node (flat), or as directories that other clients created (nested)")
	f.StringVar(&s.ensemble.ACL, "acl", "", "access control list (ACL) of new nodes: creator, which requires credentials, open, or `scheme:id:permissions,…`. Empty: creator if there are credentials, else open")
	f.Var(preset(&s.ephemeralBytes, 256<<10), "ephemeral-bytes", "maximum bytes of node paths that one lease may own; takes KiB, MiB and GiB")

	f.IntVar(&s.service.MostLeases, "max-leases", 1000, "maximum number of leases of this sidecar. One identity gets at most three quarters of them, unless there cannot be a second one")
	f.IntVar(&s.service.MostWaiters, "max-waiters", 1000, "maximum number of waiters per lock at this sidecar")
	f.IntVar(&s.service.MostWatched, "max-watched", 100000, "maximum number of keys and members watched at the same time. One identity gets at most three quarters of them, as with --max-leases")
	f.IntVar(&s.ensemble.MaxChildren, "max-children", 50000, "maximum number of names side by side in one directory of the ensemble, such as keys below one key, sequences, groups or locks. A directory whose names take 2MiB is full, too")
	f.IntVar(&s.server.MaxStreams, "max-streams", 1024, "maximum number of long-lived streams per connection. One identity gets four times as many over all its connections")
	f.IntVar(&s.server.MaxConnections, "max-connections", 1000, "maximum number of client connections; further ones are closed at once. One identity (a uid or a certificate) gets at most three quarters of them")
	f.Var(preset(&s.maxMemory, 128<<20), "max-memory", "memory in use above which the sidecar refuses responses of more than 64KiB, because clients are not reading them. It then also refuses new streams of a connection that has 64")
	f.DurationVar(&s.server.KeepaliveTime, "keepalive-time", 10*time.Second, "idle time after which a client connection is pinged")
	f.DurationVar(&s.server.KeepaliveTimeout, "keepalive-timeout", 5*time.Second, "time to answer that ping before the connection is closed")
	f.Var(choose(&s.sigterm, "drain", "handover"), "sigterm", "what happens to resumable leases when the sidecar is stopped: they end (drain), or are left to the next process (handover). The latter requires --state-dir")
	f.DurationVar(&s.server.DrainTimeout, "drain-timeout", 20*time.Second, "time for holders to release when the sidecar stops; then it ends their streams")

	f.Var(choose(&s.logLevel, "info", "debug", "warn", "error"), "log-level", "minimum log level")
	f.Var(choose(&s.logFormat, "json", "console"), "log-format", "log format, for programs or for people")
	f.StringVar(&s.auditLog, "audit-log", auditToLog, "where the audit log goes: stderr with the log, off, or the absolute path of a `file`. It has grants, losses, revocations, breaks, writes and denials")
	f.BoolVar(&s.auditStrict, "audit-log-strict", false, "grant nothing while the audit log cannot be written; releases and losses never wait for it")
	f.StringVar(&s.otlpEndpoint, "otlp-endpoint", "", "where to send traces: the `URL` of an OTLP collector, over gRPC; empty disables it")
	f.Float64Var(&s.traceRatio, "trace-ratio", 1, "sampling ratio of calls that arrive without a trace, from 0 to 1; clients that trace decide for themselves")
	f.BoolVar(&s.strict, "strict", false, "refuse to start if the ensemble or the settings are risky, or if that cannot be determined")
	f.BoolVar(&s.server.Reflection, "reflection", false, "enable gRPC server reflection, for clients such as grpcurl")
	return f
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "SIDEKEEPER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fillFrom sets what the command line left open from the environment.
func fillFrom(lookup func(string) (string, bool), flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(flag *pflag.Flag) {
		value, ok := lookup(variable(flag.Name))
		if err != nil || !ok || flag.Changed {
			return
		}
		if failure := flags.Set(flag.Name, value); failure != nil {
			err = fmt.Errorf("%s: %w", variable(flag.Name), failure)
			if wrong, is := errors.AsType[*pflag.InvalidValueError](failure); is {
				err = fmt.Errorf("%s is %q: %w", variable(flag.Name), value, ruleOf(wrong))
			}
		}
	})
	return err
}

// forService is what Kubernetes gives every pod of a namespace that has a Service of this program's name.
var forService = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)`)

// strayVariables are those of an environment that look like settings, and are none.
func strayVariables(environment []string) (stray []string) {
	known := map[string]bool{sidekeeper.AddressVariable: true, operatorAddressVariable: true, adminVariable: true}
	new(settings).flags().VisitAll(func(flag *pflag.Flag) { known[variable(flag.Name)] = true })
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, variable("")) && !known[name] && !forService.MatchString(name) {
			stray = append(stray, name)
		}
	}
	slices.Sort(stray)
	return stray
}

func tellStrayVariables(log *zap.Logger) {
	if stray := strayVariables(os.Environ()); len(stray) > 0 {
		log.Warn("environment variables that are no settings", zap.Strings("variables", stray))
	}
}

// prepare takes what the command line left open from the environment, and checks it all.
func prepare(flags *pflag.FlagSet, check func() error) error {
	err := fillFrom(os.LookupEnv, flags)
	if err == nil {
		err = check()
	}
	if err != nil {
		return exit.UsageError(err)
	}
	return nil
}

// choose makes a choice among words, of which the first is the default.
func choose(setting *choice, words ...string) *choice {
	*setting = choice{values: words}
	return setting
}

// preset gives a setting its default.
func preset[T any](setting *T, value T) *T {
	*setting = value
	return setting
}

// A fileMode is a flag's value: permissions in octal.
type fileMode fs.FileMode

func (m *fileMode) String() string { return fmt.Sprintf("%04o", uint32(*m)) }
func (m *fileMode) Type() string   { return "mode" }

func (m *fileMode) Set(text string) error {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || fs.FileMode(mode)&^os.ModePerm != 0 {
		return brokenRule("permissions in octal, such as 0660")
	}
	*m = fileMode(mode)
	return nil
}

// A byteCount is a flag's value: a number of bytes, KiB, MiB or GiB, 1 TiB at most.
type byteCount int

var byteUnits = []struct {
	name string
	size int
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func (b *byteCount) String() string {
	for _, unit := range byteUnits {
		if *b > 0 && int(*b)%unit.size == 0 {
			return fmt.Sprint(int(*b)/unit.size, unit.name)
		}
	}
	return strconv.Itoa(int(*b))
}

func (b *byteCount) Type() string { return "bytes" }

func (b *byteCount) Set(text string) error {
	digits, factor := text, 1
	for _, unit := range byteUnits {
		if cut, ok := strings.CutSuffix(text, unit.name); ok {
			digits, factor = cut, unit.size
		}
	}
	count, err := strconv.ParseUint(digits, 10, 41)
	if err != nil || count > 1<<40/uint64(factor) {
		return brokenRule("a number of bytes up to 1024GiB, such as 256KiB")
	}
	*b = byteCount(int(count) * factor)
	return nil
}

// A settingGroup is settings that are about the same thing, in the help and in the documents.
type settingGroup struct {
	title string
	flags []string
}

// settingGroups are all settings of the sidecar.
var settingGroups = []settingGroup{
	{"Listening", []string{"listen", "socket-mode", "http-listen", "http-token-file", "operator-listen", "metrics-listen", "admin-listen"}},
	{"TLS and authorization", []string{"tls-cert", "tls-key", "tls-client-ca", "tls-trust-domain", "policy"}},
	{"The ensemble", []string{
		"zookeeper", "tick-time", "sync-limit", "behind-observers", "follow-ensemble", "clock-tolerance", "zookeeper-auth-file",
		"zookeeper-tls-ca", "zookeeper-tls-cert", "zookeeper-tls-key", "zookeeper-tls-server-name", "zookeeper-sasl", "zookeeper-sasl-principal",
		"zookeeper-sasl-keytab", "zookeeper-sasl-kerberos-config", "zookeeper-sasl-service", "zookeeper-sasl-password-file",
	}},
	{"Leases", []string{"session-timeout", "heartbeat", "proof", "state-dir"}},
	{"Storage paths", []string{
		"root", "lock-root", "sequence-root", "group-root", "semaphore-root", "queue-root", "barrier-root", "config-root", "lock-layout", "election-layout", "acl",
	}},
	{"Limits", []string{
		"max-leases", "max-waiters", "max-watched", "max-children", "max-streams", "max-connections", "max-memory", "ephemeral-bytes",
	}},
	{"Keepalive and shutdown", []string{"keepalive-time", "keepalive-timeout", "sigterm", "drain-timeout"}},
	{"Logs, traces and other settings", []string{"log-level", "log-format", "audit-log", "audit-log-strict", "otlp-endpoint", "trace-ratio", "strict", "reflection"}},
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
