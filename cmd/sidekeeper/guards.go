package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

// addGuardFlag gives a command that writes --guard. Without it, the environment guards what is written.
func (r *reach) addGuardFlag(command *cobra.Command) {
	command.Flags().StringArrayVar(&r.guards, "guard", strings.Fields(os.Getenv(supervise.GuardsVariable)),
		"only while LOCK is held with TOKEN, as LOCK:TOKEN; several times for several locks, empty for none ($"+supervise.GuardsVariable+")")
}

// guarded is ctx with the guards that the command was given, or else its environment.
func (r *reach) guarded(ctx context.Context) (context.Context, error) {
	for _, text := range r.guards {
		if text == "" && len(r.guards) == 1 {
			break
		}
		lock, number, _ := strings.Cut(text, ":")
		token, err := strconv.ParseInt(number, 10, 64)
		if err != nil || lock == "" || token <= 0 {
			return nil, exit.UsageError(fmt.Errorf("guard %q: not a lock and its fencing token, as orders:4294967300", text))
		}
		ctx = sidekeeper.Ticket{Lock: lock, FencingToken: token}.Guard(ctx) //nolint:fatcontext // each adds a guard to those before
	}
	return ctx, nil
}

// unguarded refuses --guard for what is not one transaction; guards of the environment do not count.
func (r *reach) unguarded(command *cobra.Command, what string) error {
	if command.Flags().Changed("guard") && len(r.guards) > 0 && r.guards[0] != "" {
		return exit.UsageError(errors.New("--guard guards one write, and not " + what))
	}
	return nil
}
