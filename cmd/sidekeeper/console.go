package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/console"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/top"
)

// longestReply is as many bytes as the largest page of a listing takes.
const longestReply = 64 << 20

func newConsoleCommand(reach *reach) *cobra.Command {
	var listen, admin string
	command := entry("console", "Serve a page about all locks, groups, semaphores, sequences and keys to a browser on this machine",
		cobra.NoArgs, nil, func(command *cobra.Command, _ []string) error {
			logged := outliveReader(command.ErrOrStderr())
			defer logged.Close()
			ctx, stop := untilSignal(command.Context(), logged)
			defer stop()
			return reach.console(ctx, command, listen, admin)
		})
	command.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback `host:port` of the page; port 0 for one that the system chooses")
	addAdminFlag(command, &admin)
	return command
}

// console stands on the operators' socket, unless it is told another address alone.
func (r *reach) console(ctx context.Context, command *cobra.Command, listen, admin string) error {
	address := r.operatorAddress
	if flags := command.Flags(); flags.Changed("address") && !flags.Changed("operator-address") {
		address = r.address
	}
	if err := r.call(ctx, address, answers); err != nil {
		return err
	}
	connection, err := r.connect(address)
	if err != nil {
		return exit.UsageError(err)
	}
	defer connection.Close()
	page, err := newConsole(listen, address, admin, r.timeout, connection)
	if err != nil {
		return exit.UsageError(fmt.Errorf("--listen: %w", err))
	}
	fmt.Fprintf(command.OutOrStdout(), "%s\nThe address is a key: a person who has it may do what you may do. Ctrl-C ends it.\n", page.URL())
	return page.Serve(ctx)
}

// newConsole opens the listener of the page about the sidecar at that address, which the connection leads to.
func newConsole(listen, address, admin string, timeout time.Duration, connection grpc.ClientConnInterface) (*console.Console, error) {
	return console.New(console.Options{
		Listen: listen, Address: address, Version: server.ThisBuild().Version, Connection: connection,
		State: func(ctx context.Context, to io.Writer) error {
			if admin == "" {
				return errors.New("how the sidecar does is known only if it serves --admin-listen, and the console has its address as --admin")
			}
			return top.Run(ctx, top.Options{Admin: admin, Timeout: timeout, JSON: true}, nil, to)
		},
	})
}

// answers says whether a sidecar is there at all.
func answers(ctx context.Context, client *sidekeeper.Client) error {
	_, err := client.Alive(ctx)
	return err
}

// connect makes a connection to the sidecar without what the client adds, which the caller must close. The client has been there before,
// and refuses addresses that need TLS.
func (r *reach) connect(address string) (*grpc.ClientConn, error) {
	r.last = address
	secure := insecure.NewCredentials()
	if r.authority != "" || r.certificate != "" {
		config, err := r.tlsConfig()
		if err != nil {
			return nil, err
		}
		secure = credentials.NewTLS(config)
	}
	if strings.HasPrefix(address, "/") {
		address = "unix://" + address
	}
	return grpc.NewClient(address, grpc.WithTransportCredentials(secure), grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: r.timeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(longestReply)))
}
