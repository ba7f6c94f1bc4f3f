package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	stdlog "log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/journal"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/internal/sink"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
)

// newServeCommand is the sidecar itself.
func newServeCommand() *cobra.Command {
	settings := &settings{}
	return newServerCommand(&cobra.Command{Use: "serve", Short: "Run the sidecar"}, settings.flags(), settings.check,
		func(ctx context.Context, out io.Writer, logged *sink.Sink) error {
			defer paceGarbage(limitFor(int64(settings.maxMemory)))()
			return settings.serve(ctx, out, logged)
		})
}

// newServerCommand completes a command that serves until a signal ends it. The environment fills in what its flags leave open.
func newServerCommand(
	command *cobra.Command, flags *pflag.FlagSet, check func() error,
	serve func(ctx context.Context, out io.Writer, logged *sink.Sink) error,
) *cobra.Command {
	command.Args = explained(cobra.NoArgs)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := prepare(flags, check); err != nil {
			return err
		}
		logged := outliveReader(command.ErrOrStderr())
		defer logged.Close()
		ctx, stop := untilSignal(command.Context(), logged)
		defer stop()
		return serve(ctx, command.OutOrStdout(), logged)
	}
	command.Flags().SortFlags = false
	command.Flags().AddFlagSet(flags)
	command.SetUsageFunc(usageAlone)
	return command
}

// outliveReader has this process go on while the reader of stderr stands still, and after it has left. Libraries write there, too. The caller
// must close the sink.
func outliveReader(stderr io.Writer) *sink.Sink {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // not ignored: commands that are run would inherit that
	logged := sink.New(show.LogWriter(stderr))
	stdlog.SetOutput(logged.Log(sink.Options{}))
	return logged
}

// untilSignal returns a context that ends with the first signal to stop; the second one exits, and closes the sinks. The caller must call stop.
func untilSignal(ctx context.Context, logged ...*sink.Sink) (until context.Context, stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	until, cancel := context.WithCancel(ctx)
	over, watching := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watching)
		for range 2 {
			select {
			case <-signals:
			case <-over:
				return
			}
			if until.Err() != nil {
				for _, each := range logged {
					each.Close()
				}
				os.Exit(exit.Signal + int(syscall.SIGINT))
			}
			cancel()
		}
	}()
	return until, func() {
		signal.Stop(signals)
		close(over)
		<-watching
		cancel()
	}
}

// serve puts the parts together and runs them until ctx ends. What it listens on goes to out, its log to logged.
func (s *settings) serve(ctx context.Context, out io.Writer, logged *sink.Sink) error {
	metrics := server.NewMetrics()
	log := s.newLog(logged, metrics.LogLinesDropped("log"))
	audit, err := s.newAudit(logged, log, metrics.LogLinesDropped("audit"))
	if err != nil {
		return exit.UsageError(err)
	}
	tellStrayVariables(log)
	traces, err := s.startTraces(ctx, log)
	if err != nil {
		return exit.UsageError(err)
	}
	defer traces.close()
	serving := s.serverOptions(log, audit, metrics, traces)
	if s.handsOver() {
		serving.HandedOver = exitAfter(logged)
	}
	services, ensemble, err := s.openServices(log, audit, metrics, traces, serving.Limits)
	if err != nil {
		return exit.UsageError(err)
	}
	if err := s.refuseRisks(ctx, ensemble, logged.Log(sink.Options{})); err != nil {
		ensemble.Close()
		return err
	}
	sidecar, err := server.New(serving, services, ensemble)
	if err != nil {
		ensemble.Close()
		return exit.UsageError(err)
	}
	tellAddresses(out, sidecar.Addresses(), strings.Fields(sidecar.HTTPAddress())...)
	defer s.tellRisks(ctx, ensemble, log)()
	if err := sidecar.Serve(ctx); err != nil {
		return err // sessions that are still open run out by themselves, as they must
	}
	ensemble.Close()
	log.Info("stopped: every session is closed")
	return nil
}

// exitAfter ends the process when what was logged is written.
func exitAfter(logged *sink.Sink) func() {
	return func() {
		logged.Close()
		os.Exit(0)
	}
}

// openServices makes the services over the ensemble. What leases are resumed from is this process's until it ends.
func (s *settings) openServices(
	log *zap.Logger, audit audit, metrics *server.Metrics, traces traces, limits *caller.Limits,
) (*service.Services, ensemble, error) {
	options := s.serviceOptions(log, audit, metrics, limits)
	kept, err := s.openJournal(log)
	if err != nil {
		return nil, ensemble{}, err
	}
	opened, err := s.openEnsemble(log, metrics, traces, s.directories())
	if err != nil {
		return nil, ensemble{}, err
	}
	if kept != nil {
		options.Resumption = &service.Resumption{Journal: kept, HandOver: s.handsOver(), Reattach: opened.reattach}
	}
	return service.New(options, opened), opened, nil
}

func (s *settings) handsOver() bool { return s.sigterm.String() == "handover" }

// openJournal opens what leases are resumed from; nil if none are.
func (s *settings) openJournal(log *zap.Logger) (*journal.Journal, error) {
	if s.stateDir == "" {
		return nil, nil
	}
	kept, err := journal.Open(s.stateDir, strings.Join(s.directories(), " "), log)
	if err != nil {
		return nil, fmt.Errorf("--state-dir %s: %w", s.stateDir, err)
	}
	return kept, nil
}

func tellAddresses(out io.Writer, addresses []string, overHTTP ...string) {
	for _, address := range addresses {
		fmt.Fprintln(out, "listening on", address)
	}
	for _, address := range overHTTP {
		fmt.Fprintln(out, "listening for HTTP on", address)
	}
}

func (s *settings) serviceOptions(log *zap.Logger, audit audit, metrics *server.Metrics, limits *caller.Limits) service.Options {
	options := s.service
	options.LockRoot, options.SequenceRoot = s.place(s.lockRoot, "locks"), s.place(s.sequenceRoot, "sequences")
	options.GroupRoot, options.ConfigRoot = s.place(s.groupRoot, "groups"), s.place(s.configRoot, "config")
	options.QueueRoot = s.place(s.queueRoot, "queues")
	options.SemaphoreRoot, options.WaitRoot = s.place(s.semaphoreRoot, "semaphores"), s.place("", "waits")
	options.BarrierRoot, options.AgreementRoot = s.place(s.barrierRoot, "barriers"), s.place("", "agreements")
	options.OnceRoot, options.AssignmentRoot = s.place("", "once"), s.place("", "assignments")
	options.ScheduleRoot, options.ClaimRoot = s.place("", "schedules"), s.place("", "claims")
	options.LatchElections = s.elections.String() == "latch"
	options.NestedLocks = s.lockLayout.String() == "nested"
	options.SessionTimeout, options.TickTime = s.ensemble.SessionTimeout, s.ensemble.TickTime
	options.LeaseShare, options.WatchShare = limits.Share(policy.Leases), limits.Share(policy.WatchedNodes)
	options.ClaimShare = limits.Share(policy.Claims)
	options.Log, options.Audit, options.Events = log, audit.log, metrics
	if s.auditStrict {
		options.AuditStrict = audit
	}
	return options
}

func (s *settings) serverOptions(log *zap.Logger, audit audit, metrics *server.Metrics, traces traces) server.Options {
	options := s.server
	options.SocketMode, options.MaxMemory = fs.FileMode(s.socketMode), int(s.maxMemory)
	options.SilenceTimeout = s.ensemble.SessionTimeout
	options.Limits = server.NewLimits(options, s.service.MostLeases, s.service.MostWatched, recipes.MaxClaims)
	options.Log, options.Audit, options.Metrics, options.Traces = log, audit.log, metrics, traces.ofCalls()
	return options
}

// newLog is a log whose warnings wait for no other lines.
func (s *settings) newLog(to *sink.Sink, dropped func(lines int)) *zap.Logger {
	level, err := zapcore.ParseLevel(s.logLevel.String())
	if err != nil {
		level = zapcore.InfoLevel // the flag's words are zap's
	}
	encoder := s.encoder(encoding())
	gap := zapcore.Entry{Level: zapcore.WarnLevel, Message: "lines of the log are missing: they were not written in time"}
	lines := to.Log(sink.Options{Wait: sink.Delay, Gap: gapLine(encoder, gap), Dropped: dropped})
	atOnce := zap.Hooks(func(line zapcore.Entry) error {
		if line.Level < zap.WarnLevel {
			return nil
		}
		return lines.Sync()
	})
	return zap.New(zapcore.NewCore(encoder, lines, level), atOnce, zap.ErrorOutput(lines))
}

// gapLine makes the line that stands where others are missing.
func gapLine(encoder zapcore.Encoder, entry zapcore.Entry) func(lines int) []byte {
	return func(lines int) []byte {
		entry := entry
		entry.Time = time.Now()
		line, err := encoder.EncodeEntry(entry, []zapcore.Field{zap.Int("lines", lines)})
		if err != nil {
			return nil
		}
		return line.Bytes()
	}
}

// encoder is for people or for programs.
func (s *settings) encoder(config zapcore.EncoderConfig) zapcore.Encoder {
	if s.logFormat.String() == "console" {
		return zapcore.NewConsoleEncoder(config)
	}
	return zapcore.NewJSONEncoder(config)
}

func encoding() zapcore.EncoderConfig {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	config.TimeKey = "time"
	return config
}
