package main

import (
	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/internal/top"
)

const (
	adminVariable       = "SIDEKEEPER_ADMIN_ADDRESS"
	defaultAdminAddress = "127.0.0.1:7182"
)

func newTopCommand(reach *reach) *cobra.Command {
	var options top.Options
	command := entry("top", "Show a sidecar's leases, locks, losses and latency live",
		cobra.NoArgs, nil, func(command *cobra.Command, _ []string) error {
			options.Timeout, options.JSON = reach.timeout, reach.json()
			ctx, stop := untilSignal(command.Context())
			defer stop()
			return top.Run(ctx, options, command.InOrStdin(), command.OutOrStdout())
		})
	addAdminFlag(command, &options.Admin)
	command.Flags().BoolVar(&options.Once, "once", false, "print once and exit")
	return command
}

// addAdminFlag is for commands that ask a sidecar's admin listener.
func addAdminFlag(command *cobra.Command, address *string) {
	command.Flags().StringVar(address, "admin", fromEnvironment(adminVariable, defaultAdminAddress),
		"`address` of the sidecar's --admin-listen: host:port or unix:///path ($"+adminVariable+")")
}
