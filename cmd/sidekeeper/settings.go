package main

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sidekeeper/sidekeeper/service"
)

// settings are what `sidekeeper serve` is told.
type settings struct {
	listen         []string
	operatorListen string
	metricsListen  string
	adminListen    string
	socketMode     fileMode
	tls            service.TLSFiles
	policy         string

	zookeeper       []string
	sessionTimeout  time.Duration
	tickTime        time.Duration
	syncLimit       int
	heartbeat       time.Duration
	proof           choice
	behindObservers bool
	authFile        string
	tlsCA           string
	tlsCert         string
	tlsKey          string
	tlsServerName   string

	root           string
	lockRoot       string
	sequenceRoot   string
	groupRoot      string
	configRoot     string
	lockLayout     choice
	acl            string
	ephemeralBytes byteCount

	maxLeases        int
	maxWaiters       int
	maxWatched       int
	maxStreams       int
	maxConnections   int
	maxMemory        byteCount
	keepaliveTime    time.Duration
	keepaliveTimeout time.Duration
	drainTimeout     time.Duration

	logLevel     choice
	logFormat    choice
	auditLog     string
	otlpEndpoint string
	traceRatio   float64
	reflection   bool
	strict       bool
}

// flags is every setting, with its name, default and help.
func (s *settings) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringSliceVar(&s.listen, "listen", []string{"unix:///run/sidekeeper/sidekeeper.sock"}, "where callers are served: `unix:///path`, a loopback host:port, or with TLS any host:port; repeatable. All who call on unix:///path?identity=NAME are one caller, socket:NAME")
	f.Var(preset(&s.socketMode, 0o660), "socket-mode", "mode of the callers' Unix sockets")
	f.StringVar(&s.operatorListen, "operator-listen", "unix:///run/sidekeeper/operator.sock", "where operators are served: `unix:///path` of a socket for root and the sidecar's user alone; empty for nowhere")
	f.StringVar(&s.metricsListen, "metrics-listen", "", "where /metrics, /healthz and /readyz are served over HTTP, as `host:port`; empty for nowhere")
	f.StringVar(&s.adminListen, "admin-listen", "", "where the page of what happens, what sidekeeper top shows, and profiles are served over HTTP, as a loopback `host:port` or unix:///path; empty for nowhere")
	f.StringVar(&s.tls.Certificate, "tls-cert", "", "`file` with the certificate for callers over TCP, and its chain; goes together with --tls-key and --tls-client-ca; read again when it changes")
	f.StringVar(&s.tls.Key, "tls-key", "", "`file` with that certificate's key; read again when it changes")
	f.StringVar(&s.tls.ClientCA, "tls-client-ca", "", "`file` with the authorities of callers' certificates, which every caller over TCP then needs; read again when it changes")

	f.StringVar(&s.policy, "policy", "", "`file` with rules of who may do what on the callers' listeners, and nobody else; read again when it changes; empty for everybody everything that is not for operators")
	f.StringSliceVar(&s.zookeeper, "zookeeper", nil, "the ensemble's servers, `host:port,…`; required")
	f.DurationVar(&s.sessionTimeout, "session-timeout", 15*time.Second, "how long a lease survives without the ensemble, unless its caller asks for another time; one that is too short to be proved does not start")
	f.DurationVar(&s.tickTime, "tick-time", 2*time.Second, "tickTime of the ensemble; a smaller value than it has is unsafe")
	f.IntVar(&s.syncLimit, "sync-limit", 5, "syncLimit of the ensemble; a smaller value than it has is unsafe")
	f.DurationVar(&s.heartbeat, "heartbeat", 2*time.Second, "time between the heartbeats by which a lease proves itself")
	f.Var(choose(&s.proof, "quorum", "static"), "proof", "how leases prove themselves: by transactions, or by the ensemble's own limits alone, which asks for long session timeouts")
	f.BoolVar(&s.behindObservers, "behind-observers", false, "whether servers of the ensemble are observers behind others")
	f.StringVar(&s.authFile, "zookeeper-auth-file", "", "`file` with user:password on a line for the ensemble's digest scheme, or on up to 10 lines while they are rotated; read again when it changes")
	f.StringVar(&s.tlsCA, "zookeeper-tls-ca", "", "`file` with the authorities of the ensemble's certificates; switches TLS towards it on; read again when it changes")
	f.StringVar(&s.tlsCert, "zookeeper-tls-cert", "", "`file` with the certificate to show to the ensemble; read again when it changes")
	f.StringVar(&s.tlsKey, "zookeeper-tls-key", "", "`file` with that certificate's key; read again when it changes")
	f.StringVar(&s.tlsServerName, "zookeeper-tls-server-name", "", "`name` in the ensemble's certificates, if it is not the host's")

	f.StringVar(&s.root, "root", "/sidekeeper", "`path` in the ensemble below which everything lies; one per fleet of sidecars")
	f.StringVar(&s.lockRoot, "lock-root", "", "`path` of the locks, to share them with other clients; empty for locks below the root")
	f.StringVar(&s.sequenceRoot, "sequence-root", "", "`path` of the sequences, to share them with other clients; empty for sequences below the root")
	f.StringVar(&s.groupRoot, "group-root", "", "`path` of the groups, to share them with other clients; empty for groups below the root")
	f.StringVar(&s.configRoot, "config-root", "", "`path` of the configuration, to share it with other clients; empty for config below the root")
	f.Var(choose(&s.lockLayout, "flat", "nested"), "lock-layout", "how names with slashes lie below it: as one node, or as directories that other clients made")
	f.StringVar(&s.acl, "acl", "", "who may use new nodes: creator, which takes credentials, open, or `scheme:id:permissions,…`; empty for the creator alone if there are credentials, else for all")
	f.Var(preset(&s.ephemeralBytes, 256<<10), "ephemeral-bytes", "most bytes of node paths that one lease may own, with KiB or MiB if you like")

	f.IntVar(&s.maxLeases, "max-leases", 1000, "most leases of this sidecar")
	f.IntVar(&s.maxWaiters, "max-waiters", 1000, "most waiters for one lock at this sidecar")
	f.IntVar(&s.maxWatched, "max-watched", 100000, "most keys and members that this sidecar watches at the same time")
	f.IntVar(&s.maxStreams, "max-streams", 1024, "most long-lived streams of one connection")
	f.IntVar(&s.maxConnections, "max-connections", 1000, "most connections of callers, of which one caller, that is a uid or a certificate, gets at most three quarters; others are closed at once")
	f.Var(preset(&s.maxMemory, 128<<20), "max-memory", "bytes in use beyond which answers of more than 64KiB are refused, since callers do not read them")
	f.DurationVar(&s.keepaliveTime, "keepalive-time", 10*time.Second, "silence of a caller after which it is pinged")
	f.DurationVar(&s.keepaliveTimeout, "keepalive-timeout", 5*time.Second, "time to answer that ping; then the connection is given up")
	f.DurationVar(&s.drainTimeout, "drain-timeout", 20*time.Second, "time that holders get to let go when the sidecar stops")

	f.Var(choose(&s.logLevel, "info", "debug", "warn", "error"), "log-level", "least level that is logged")
	f.Var(choose(&s.logFormat, "json", "console"), "log-format", "log for programs or for people")
	f.StringVar(&s.auditLog, "audit-log", auditToLog, "where grants, losses, revocations, breaks and denials are recorded: stderr with the log, off, or the absolute path of a `file`")
	f.StringVar(&s.otlpEndpoint, "otlp-endpoint", "", "where traces of calls are sent: the `URL` of a collector that speaks OTLP over gRPC; empty for nowhere")
	f.Float64Var(&s.traceRatio, "trace-ratio", 1, "which part of the calls that belong to no trace yet begins one, from 0 to 1; callers that trace decide themselves")
	f.BoolVar(&s.strict, "strict", false, "whether to refuse to start with an ensemble or with settings that are risky, or of which that cannot be found out")
	f.BoolVar(&s.reflection, "reflection", false, "whether clients such as grpcurl may ask for the API's description")
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
		}
	})
	return err
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
		return fmt.Errorf("%q is not permissions in octal, such as 0660", text)
	}
	*m = fileMode(mode)
	return nil
}

// A byteCount is a flag's value: a number of bytes, KiB or MiB.
type byteCount int

func (b *byteCount) String() string {
	if *b > 0 && *b%(1<<20) == 0 {
		return fmt.Sprintf("%dMiB", *b>>20)
	}
	if *b > 0 && *b%(1<<10) == 0 {
		return fmt.Sprintf("%dKiB", *b>>10)
	}
	return strconv.Itoa(int(*b))
}
func (b *byteCount) Type() string { return "bytes" }

func (b *byteCount) Set(text string) error {
	digits, factor := text, 1
	for unit, size := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20} {
		if cut, ok := strings.CutSuffix(text, unit); ok {
			digits, factor = cut, size
		}
	}
	count, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || count > 1<<30/uint64(factor) {
		return fmt.Errorf("%q is not a number of bytes, such as 256KiB", text)
	}
	*b = byteCount(int(count) * factor)
	return nil
}
