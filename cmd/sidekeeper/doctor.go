package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/doctor"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
)

// What doctor exits with, besides 0 and the codes of all commands.
const (
	exitWarnings = 2
	exitProblems = 3
)

// doctorSettings are what `sidekeeper doctor` shares with `sidekeeper serve`.
var doctorSettings = slices.Concat([]string{
	"zookeeper", "session-timeout", "tick-time", "sync-limit", "heartbeat", "proof", "behind-observers", "follow-ensemble",
	"zookeeper-auth-file", "zookeeper-tls-ca", "zookeeper-tls-cert", "zookeeper-tls-key", "zookeeper-tls-server-name",
	"root", "lock-root", "lock-layout", "max-leases",
}, saslFlags)

func newDoctorCommand(reach *reach) *cobra.Command {
	settings, recheckAfter, remembered := &settings{}, time.Duration(0), int64(0)
	sessions, watches := false, false
	all := settings.flags()
	command := &cobra.Command{
		Use:   "doctor [NAME...]",
		Short: "Report what is wrong or risky about the ensemble and the locks in it",
		RunE: func(command *cobra.Command, names []string) error {
			if err := prepare(all, settings.check); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), reach.timeout+recheckAfter)
			defer cancel()
			switch {
			case sessions && watches:
				return exit.UsageError(errors.New("--sessions and --watches: one of them"))
			case sessions, watches:
				return reach.census(ctx, command.OutOrStdout(), command.ErrOrStderr(), settings, watches)
			}
			return reach.examine(ctx, command.OutOrStdout(), settings, doctorFlags{recheckAfter, remembered}, names)
		},
	}
	for _, name := range doctorSettings {
		command.Flags().AddFlag(all.Lookup(name))
	}
	command.Flags().Var(span(&recheckAfter, 0, forever), "recheck-after",
		"how long to wait before empty directories are checked again, to find those that remain; 90s is enough")
	command.Flags().Var(number(&remembered, 0, math.MaxInt64), "remembered-token",
		"largest fencing token that a resource remembers, to find that the ensemble was restored from an older state")
	command.Flags().BoolVar(&sessions, "sessions", false, "list the ensemble's sessions instead, with their clients, nodes and owners")
	command.Flags().BoolVar(&watches, "watches", false, "list who watches which node instead; busy servers take long to answer")
	command.Flags().SortFlags = false
	return command
}

// doctorFlags are what only doctor is told.
type doctorFlags struct {
	recheckAfter    time.Duration
	rememberedToken int64
}

func (r *reach) examine(ctx context.Context, out io.Writer, settings *settings, flags doctorFlags, names []string) error {
	r.last = "the ensemble"
	paths, err := settings.lockPaths(names)
	if err != nil {
		return err
	}
	var findings []doctor.Finding
	ensemble, err := settings.openEnsemble(zap.NewNop(), server.NewMetrics(), traces{}, nil)
	switch {
	case errors.Is(err, recipes.ErrUnsafeTimeout):
		findings = []doctor.Finding{{
			Severity: doctor.Problem, About: "--session-timeout", Text: err.Error(), Advice: "choose a longer one, or a shorter --heartbeat",
		}}
	case err != nil:
		return exit.UsageError(err)
	default:
		defer ensemble.Close()
		if findings, err = doctor.Examine(ctx, ensemble, settings.forDoctor(flags), paths); err != nil {
			return errors.Join(r.showFindings(out, findings), unreached(err))
		}
	}
	return errors.Join(r.showFindings(out, findings), verdictOn(findings))
}

// lockPaths are the nodes of locks.
func (s *settings) lockPaths(names []string) (paths []string, err error) {
	for _, name := range names {
		path, err := service.LockPath(s.place(s.lockRoot, "locks"), s.lockLayout.String() == "nested", name)
		if err != nil {
			return nil, exit.UsageError(err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (s *settings) forDoctor(flags doctorFlags) doctor.Settings {
	secrets := s.sasl.secrets()
	maps.Copy(secrets, map[string]string{
		"zookeeper-auth-file": s.authFile, "zookeeper-tls-key": s.tlsKey, "tls-key": s.server.TLS.Key,
	})
	return doctor.Settings{
		Servers: s.ensemble.Servers, SessionTimeout: s.ensemble.SessionTimeout, TickTime: s.ensemble.TickTime, SyncLimit: s.ensemble.SyncLimit,
		Observers: s.ensemble.Observers, FollowServers: s.ensemble.FollowServers,
		Credentials: s.authFile != "" || s.tlsCert != "", SASL: !s.sasl.uses(saslNone), Secure: s.tlsCA != "",
		Validity: s.validity(), MostLeases: s.service.MostLeases, Root: s.root, LockRoot: s.place(s.lockRoot, "locks"),
		Directories: s.directories(), RecheckAfter: flags.recheckAfter, RememberedToken: flags.rememberedToken,
		Secrets: secrets,
	}
}

// unreached gives an error of the ensemble its code.
func unreached(err error) error {
	if errors.Is(err, recipes.ErrDenied) || errors.Is(err, recipes.ErrAuthDemanded) || errors.Is(err, recipes.ErrUnauthenticated) {
		return exit.With(exit.Denied, err)
	}
	if !errors.Is(err, recipes.ErrUnreachable) {
		err = fmt.Errorf("%w: %w", recipes.ErrUnreachable, err)
	}
	return exit.With(exit.Unreachable, err)
}

func verdictOn(findings []doctor.Finding) error {
	if len(findings) == 0 {
		return nil
	}
	switch findings[0].Severity {
	case doctor.Problem:
		return exit.With(exitProblems, nil)
	case doctor.Warning:
		return exit.With(exitWarnings, nil)
	default:
		return nil
	}
}

func (r *reach) showFindings(out io.Writer, findings []doctor.Finding) error {
	if r.json() {
		return show.JSON(out, append([]doctor.Finding{}, findings...))
	}
	if len(findings) == 0 {
		_, err := io.WriteString(out, "no problems found\n")
		return err
	}
	return writeFindings(out, findings)
}

func writeFindings(out io.Writer, findings []doctor.Finding) error {
	for _, f := range findings {
		lines := fmt.Sprintf("%v: %s: %s\n", f.Severity, show.Printable(f.About), show.Printable(f.Text))
		if f.Advice != "" {
			lines += fmt.Sprintf("    %s\n", show.Printable(f.Advice))
		}
		if _, err := io.WriteString(out, lines); err != nil {
			return err
		}
	}
	return nil
}
