package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/quota"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// quotaSettings are what `sidekeeper quota` shares with `sidekeeper serve`: how to reach the ensemble.
var quotaSettings = slices.Concat([]string{
	"zookeeper", "session-timeout", "tick-time", "zookeeper-auth-file", "zookeeper-tls-ca", "zookeeper-tls-cert", "zookeeper-tls-key",
	"zookeeper-tls-server-name", "root", "acl",
}, saslFlags)

func newQuotaCommand(reach *reach) *cobra.Command {
	return parent("quota", "Manage the ensemble's quotas",
		newQuotaSetCommand(reach),
		newQuotaListCommand(reach),
		newQuotaRemoveCommand(reach),
	)
}

// onQuotas completes a command that does something with the ensemble's quotas.
func (r *reach) onQuotas(
	command *cobra.Command, do func(ctx context.Context, ensemble ensemble, root string, args []string) error,
) *cobra.Command {
	settings := &settings{}
	all := settings.flags()
	for _, name := range quotaSettings {
		command.Flags().AddFlag(all.Lookup(name))
	}
	command.Flags().SortFlags = false
	command.ValidArgsFunction = cobra.NoFileCompletions
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := prepare(all, settings.check); err != nil {
			return err
		}
		if len(args) > 0 && !isNodePath(args[0]) {
			return exit.UsageError(errors.New("PATH is " + strconv.Quote(args[0]) + ": " + nodePathRule))
		}
		ctx, cancel := context.WithTimeout(command.Context(), r.timeout)
		defer cancel()
		r.last = "the ensemble"
		ensemble, err := settings.openEnsemble(zap.NewNop(), server.NewMetrics(), traces{}, nil)
		if err != nil {
			return exit.UsageError(err)
		}
		defer ensemble.Close()
		err = do(ctx, ensemble, settings.root, args)
		for _, failure := range []error{
			recipes.ErrDenied, recipes.ErrAuthDemanded, recipes.ErrUnauthenticated, recipes.ErrUnreachable, recipes.ErrOutcomeUnknown,
			context.DeadlineExceeded,
		} {
			if errors.Is(err, failure) {
				return unreached(err)
			}
		}
		return err
	}
	return command
}

func newQuotaSetCommand(reach *reach) *cobra.Command {
	limits := quota.Amount{}
	command := &cobra.Command{
		Use: "set PATH", Short: "Set the quota of a path in the ensemble, for operators", Args: explained(cobra.ExactArgs(1)),
	}
	command.Flags().Int64Var(&limits.Nodes, "nodes", quota.None, "maximum number of nodes, the path's own included; -1 for any number")
	command.Flags().Int64Var(&limits.Bytes, "bytes", quota.None, "maximum number of bytes of their data; -1 for any number")
	return reach.onQuotas(command, func(ctx context.Context, ensemble ensemble, _ string, args []string) error {
		if limits.Nodes < quota.None || limits.Bytes < quota.None || limits.Nodes == quota.None && limits.Bytes == quota.None {
			return exit.UsageError(errors.New("--nodes or --bytes is required, and neither is negative"))
		}
		return quota.Set(ctx, ensemble, args[0], limits)
	})
}

func newQuotaListCommand(reach *reach) *cobra.Command {
	command := &cobra.Command{
		Use: "ls [PATH]", Short: "List the ensemble's quotas below the root, or below a path", Args: explained(cobra.MaximumNArgs(1)),
	}
	return reach.onQuotas(command, func(ctx context.Context, ensemble ensemble, root string, args []string) error {
		quotas, err := quota.Read(ctx, ensemble, append(args, root)[0])
		if err != nil {
			return err
		}
		return reach.showQuotas(command.OutOrStdout(), quotas)
	})
}

func (r *reach) showQuotas(to io.Writer, quotas []quota.Quota) error {
	if r.json() {
		return show.JSON(to, append([]quota.Quota{}, quotas...))
	}
	limit := func(most int64) string {
		if most == quota.None {
			return "-"
		}
		return strconv.FormatInt(most, 10)
	}
	var rows [][]string
	for _, q := range quotas {
		rows = append(rows, []string{
			show.Printable(q.Path), strconv.FormatInt(q.Used.Nodes, 10), limit(q.Max.Nodes), strconv.FormatInt(q.Used.Bytes, 10), limit(q.Max.Bytes),
		})
	}
	return show.Table(to, "PATH NODES MAX-NODES BYTES MAX-BYTES", rows)
}

func newQuotaRemoveCommand(reach *reach) *cobra.Command {
	command := &cobra.Command{
		Use: "rm PATH", Short: "Remove the quota of a path in the ensemble, for operators", Args: explained(cobra.ExactArgs(1)),
	}
	return reach.onQuotas(command, func(ctx context.Context, ensemble ensemble, _ string, args []string) error {
		return quota.Remove(ctx, ensemble, args[0])
	})
}
