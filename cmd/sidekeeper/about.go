package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newLeasesCommand(reach *reach) *cobra.Command {
	return entry("leases", "List the leases of the sidecar, oldest first",
		cobra.NoArgs, nil, listing(reach, func(client *sidekeeper.Client, ctx context.Context, _ string) iter.Seq2[*sidekeeper.LeaseInfo, error] {
			return client.Leases(ctx)
		}, reach.showLeases))
}

func (r *reach) showLeases(to io.Writer, entries []*sidekeeper.LeaseInfo) error {
	leases := each(entries, wireLease)
	return tabulate(r, to, &leasev1.ListResponse{Leases: leases}, "OWNER IDENTITY STATE AGE VALID TTL HOLDS METADATA", leases, leaseRow)
}

func leaseRow(lease *leasev1.Lease) []string {
	holds := each(lease.GetPossessions(), func(possession *leasev1.Possession) string {
		word := possession.GetKind() + " " + possession.GetName()
		if !possession.GetHeld() {
			word += " (waiting)"
		}
		return word
	})
	return []string{
		show.Owner(lease.GetOwner()), show.Printable(lease.GetIdentity()), show.Enum(lease.GetState()), show.Age(lease.GetAge()),
		show.Age(lease.GetValidFor()), show.Age(lease.GetTtl()), show.Printable(strings.Join(holds, ", ")), show.Metadata(lease.GetMetadata()),
	}
}

func newHealthCommand(reach *reach) *cobra.Command {
	ready := false
	command := entry("health", "Check whether the sidecar is serving: exits with 0 if so, else with 69",
		cobra.NoArgs, nil, asking(reach, func(ctx context.Context, client *sidekeeper.Client, _ []string) (bool, error) {
			serves, err := client.Alive(ctx)
			if ready && err == nil {
				return client.Ready(ctx)
			}
			return serves, err
		}, reach.showHealth))
	command.Flags().BoolVar(&ready, "ready", false, "also require contact with the ensemble")
	return command
}

func (r *reach) showHealth(to io.Writer, serves bool) error {
	if r.json() {
		if err := show.JSON(to, map[string]bool{"serving": serves}); err != nil || serves {
			return err
		}
		return exit.With(exit.Unreachable, nil)
	}
	if !serves {
		return exit.With(exit.Unreachable, errors.New("not serving"))
	}
	_, err := fmt.Fprintln(to, "serving")
	return err
}

func newVersionCommand(reach *reach) *cobra.Command {
	return entry("version", "Print the version of this build", cobra.NoArgs, nil, func(command *cobra.Command, _ []string) error {
		if reach.json() {
			return show.JSON(command.OutOrStdout(), server.ThisBuild())
		}
		_, err := fmt.Fprintln(command.OutOrStdout(), server.ThisBuild())
		return err
	})
}
