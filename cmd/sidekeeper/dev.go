package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidekeeper/sidekeeper/internal/dev"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/sink"
)

// stateTimeout is how long the console waits for what the sidecar's admin listener says.
const stateTimeout = 10 * time.Second

// devSettings are what `sidekeeper dev` is told.
type devSettings struct {
	options      dev.Options
	ensemblePort uint16
	faults       []string
	untilInput   bool
	console      string // where its page is served; nowhere if empty
	logging      settings
}

// newDevCommand is a sidecar that needs nothing.
func newDevCommand() *cobra.Command {
	settings := &devSettings{}
	command := &cobra.Command{Use: "dev", Short: "Run a sidecar with an ensemble in memory, for development and tests"}
	return newServerCommand(command, settings.flags(), settings.check, func(ctx context.Context, out io.Writer, logged *sink.Sink) error {
		if settings.untilInput {
			ctx = untilEnd(ctx, command.InOrStdin())
		}
		return settings.serve(ctx, out, logged)
	})
}

// untilEnd returns a context that ends with the input. What reads it ends with it, too, or else with the process: a pipe cannot be
// left that nothing is written to.
func untilEnd(ctx context.Context, input io.Reader) context.Context {
	until, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, input) // however it ends
	}()
	return until
}

func (s *devSettings) check() (err error) {
	s.options.EnsemblePort = int(s.ensemblePort)
	if s.options.Faults, err = dev.ParseFaults(s.faults); err != nil {
		return fmt.Errorf("--fault %w", err)
	}
	return errors.Join(clockToleranceRule(s.options.ClockTolerance).broken(), foldersThere("listen", s.options.Listen...), foldersThere("admin-listen", s.options.AdminListen))
}

// foldersThere refuses Unix sockets in folders that are missing: a misspelt path would make them.
func foldersThere(flag string, addresses ...string) error {
	for _, address := range addresses {
		path, isUnix := strings.CutPrefix(address, "unix://")
		if _, err := os.Stat(filepath.Dir(path)); isUnix && err != nil {
			return fmt.Errorf("--%s is %q: the path of a socket in a folder that is there", flag, address)
		}
	}
	return nil
}

func (s *devSettings) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("dev", pflag.ContinueOnError)
	f.SortFlags = false
	f.Var(listOf(&s.options.Listen, "127.0.0.1:7181"), "listen", "client listen addresses, besides a Unix socket in a private folder: `unix:///path` or a loopback host:port; repeatable")
	f.BoolVar(&s.options.AnyAddress, "listen-anywhere", false, "allow --listen addresses that other machines reach, as in a container. Each of their callers is an operator, even without TLS")
	f.StringVar(&s.options.HTTPListen, "http-listen", "", "listen address of the API over HTTP with JSON, as a loopback `host:port`. It has no held streams. Empty disables it")
	f.StringVar(&s.options.TLSFolder, "tls-folder", "", "serve TCP addresses with TLS, with certificates that are made anew in this `folder`. Callers take ca.pem, client.pem and client-key.pem from it; expired.pem and expired-key.pem are a pair that has expired")
	f.Uint16Var(&s.ensemblePort, "ensemble-port", 0, "`port` on 127.0.0.1 where ZooKeeper clients of any kind can join the ensemble; 0 for one that the system chooses")
	f.DurationVar(&s.options.SessionTimeout, "session-timeout", dev.SessionTimeout, "how long a lease survives without the ensemble, unless its client requests another value: 2.2s to 20s")
	f.DurationVar(&s.options.ClockTolerance, "clock-tolerance", usualTolerance, clockToleranceHelp)
	f.DurationVar(&s.options.DrainTimeout, "drain-timeout", 2*time.Second, "time for holders to release when the sidecar stops; then it ends their streams")
	f.BoolVar(&s.untilInput, "until-input-ends", false, "also stop when standard input ends. A pipe ends with the program that started the sidecar, even if that program is killed")
	f.StringArrayVar(&s.faults, "fault", nil, "what goes wrong, `name=value`, repeatable: "+dev.FaultsHelp)
	f.StringVar(&s.options.MetricsListen, "metrics-listen", "", "listen address (HTTP) of /metrics, /healthz and /readyz, as a loopback `host:port`; empty disables it")
	f.StringVar(&s.options.AdminListen, "admin-listen", "", "listen address (HTTP) of the status page, the data for sidekeeper top, and profiles, as a loopback `host:port` or unix:///path; empty disables it")
	f.StringVar(&s.console, "console-listen", "", "listen address (HTTP) of the console, the page about all locks, groups and keys, as a loopback `host:port`; empty disables it")
	f.Var(choose(&s.logging.logLevel, "info", "debug", "warn", "error"), "log-level", "minimum log level")
	f.Var(choose(&s.logging.logFormat, "console", "json"), "log-format", "log format, for people or for programs")
	return f
}

// serve runs the sidecar until ctx ends. What to try goes to out, its log to logged.
func (s *devSettings) serve(ctx context.Context, out io.Writer, logged *sink.Sink) error {
	s.options.Metrics = server.NewMetrics()
	s.options.Log = s.logging.newLog(logged, s.options.Metrics.LogLinesDropped("log"))
	sidecar, err := dev.New(ctx, s.options)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil //nolint:nilerr // it was ended while it began
	case errors.Is(err, dev.ErrTaken):
		return exit.UsageError(fmt.Errorf("%w; choose with --listen and --ensemble-port, as in --listen 127.0.0.1:0", err))
	case errors.Is(err, dev.ErrNotLoopback):
		return exit.UsageError(fmt.Errorf("%w, unless with --listen-anywhere", err))
	case err != nil:
		return exit.UsageError(err)
	}
	url, console, err := s.openConsole(sidecar)
	if err != nil {
		return errors.Join(err, sidecar.Abandon())
	}
	if err := s.welcome(out, sidecar, url); err != nil {
		ended, end := context.WithCancel(ctx)
		end()
		return errors.Join(err, console(ended), sidecar.Abandon())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return sidecar.Serve(ctx) })
	group.Go(func() error { return console(ctx) })
	return group.Wait()
}

// welcome says what there is, and what to try.
func (s *devSettings) welcome(out io.Writer, sidecar *dev.Sidecar, console string) error {
	addresses := sidecar.Addresses()
	plain := addresses[len(addresses)-1]
	if s.options.TLSFolder != "" {
		plain = addresses[0] // a Unix socket
	}
	return welcomeText.Execute(out, map[string]string{
		"Program":      os.Args[0],
		"Addresses":    strings.Join(addresses, ", "),
		"Certificates": s.options.TLSFolder,
		"Ensemble":     sidecar.EnsembleAddress(),
		"HTTP":         sidecar.HTTPAddress(),
		"Metrics":      sidecar.MetricsAddress(),
		"Admin":        sidecar.AdminAddress(),
		"Page":         pageAt(sidecar.AdminAddress()),
		"Console":      console,
		"Address":      plain,
		"Target":       grpcTarget(plain),
	})
}

// pageAt is where the page of an admin listener is; empty for none.
func pageAt(address string) string {
	if address == "" || strings.HasPrefix(address, "unix://") {
		return address
	}
	return "http://" + address + "/"
}

// openConsole opens the listener of the console, if there shall be one, and returns where its page is. The caller must call serve, which
// serves the page until its context ends.
func (s *devSettings) openConsole(sidecar *dev.Sidecar) (url string, serve func(context.Context) error, err error) {
	if s.console == "" {
		return "", func(context.Context) error { return nil }, nil
	}
	socket := sidecar.Addresses()[0] // without TLS
	connection, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(longestReply)))
	if err != nil {
		return "", nil, err
	}
	page, err := newConsole(s.console, socket, sidecar.AdminAddress(), stateTimeout, connection)
	if err != nil {
		return "", nil, errors.Join(exit.UsageError(fmt.Errorf("--console-listen: %w", err)), connection.Close())
	}
	return page.URL(), func(ctx context.Context) error { return errors.Join(page.Serve(ctx), connection.Close()) }, nil
}

// grpcTarget is an address as grpcurl wants it.
func grpcTarget(address string) string {
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		return "unix:" + path
	}
	return address
}

var welcomeText = template.Must(template.New("welcome").Parse(`
Sidekeeper, for development and tests only: its ensemble is in memory and keeps nothing, and every caller is an operator.

  console:   {{if .Console}}{{.Console}}
{{- else}}{{.Program}} console --address {{.Address}}{{with .Admin}} --admin {{.}}{{end}}, for all locks, groups and keys in a browser{{end}}
{{- with .Page}}
  page:      {{.}}  or in a terminal: {{$.Program}} top --admin {{$.Admin}}{{end}}
  callers:   {{.Addresses}}
{{- with .Certificates}}
  TLS:       over TCP, with ca.pem, client.pem and client-key.pem from {{.}}{{end}}
{{- with .HTTP}}
  HTTP:      {{.}}, with JSON: POST to /sidekeeper.lock.v1.LockService/Get{{end}}
{{- with .Metrics}}
  metrics:   http://{{.}}/metrics{{end}}
  ensemble:  {{.Ensemble}}, for kazoo, Curator, zkCli and any other ZooKeeper client

Next, type these lines in another terminal and in a third one, which waits until you stop the other with Ctrl-C:

  export SIDEKEEPER_ADDRESS={{.Address}} SIDEKEEPER_OPERATOR_ADDRESS={{.Address}}
  {{.Program}} lock run orders -- sh -c 'echo "mine, with token $SIDEKEEPER_FENCING_TOKEN"; exec sleep 600'

See the lock lost: break the hold with that token, or expire its lease over gRPC.

  {{.Program}} lock break orders --token TOKEN --reason 'to see it lost'
  grpcurl -plaintext -d '{"lock":"orders"}' {{.Target}} sidekeeper.dev.v1.DevService/ExpireLease

Your first lock in Python, Node.js, Java or Go, then numbers, members and configuration: docs/quickstart.md of the repository.
Ctrl-C here stops it.

`))
