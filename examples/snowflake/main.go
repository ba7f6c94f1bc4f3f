// Snowflake makes ids that are unique over all its processes, each of which has a worker number that no other has:
//
//	sidekeeper semaphore create ids 1024
//	snowflake ids 10
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

const (
	// tolerance is by how much the clocks of the workers may differ.
	tolerance = time.Second
	// quarantine is for how long a number rests that was lost. It is longer than clocks are set back.
	quarantine = 10 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing to undo by then
	}
}

func run(ctx context.Context, to io.Writer, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: snowflake SEMAPHORE COUNT")
	}
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	client, err := sidekeeper.Dial(os.Getenv("SIDEKEEPER_ADDRESS"))
	if err != nil {
		return err
	}
	defer client.Close()
	return makeIDs(ctx, client, args[0], count, to)
}

// makeIDs makes ids while it has a number.
func makeIDs(ctx context.Context, client *sidekeeper.Client, semaphore string, count int, to io.Writer) error {
	options := sidekeeper.PermitsOptions{Numbered: true, Quarantine: new(quarantine), Owner: "snowflake"}
	return client.WithPermits(ctx, semaphore, options, func(ctx context.Context, permits *sidekeeper.Permits) error {
		ids, err := newGenerator(permits, time.Now)
		if err != nil {
			return err
		}
		for range count {
			id, err := ids.next(ctx)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(to, id); err != nil {
				return err
			}
		}
		return nil
	})
}
