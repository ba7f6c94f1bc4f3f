// Command ensemble runs a real ZooKeeper ensemble on the loopback interface, for trying things out. It keeps nothing.
//
// Its first line is the connection string; it runs until SIGINT or SIGTERM.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/ensemble"
)

// firstPort is ZooKeeper's own, if it is free.
const firstPort = 2181

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "ensemble:", err)
		os.Exit(1) //nolint:gocritic // run has stopped everything
	}
}

// run is the program: it starts the servers, says where they are and stops them when ctx ends.
func run(ctx context.Context, args []string, out, messages io.Writer) error {
	flags := flag.NewFlagSet("ensemble", flag.ContinueOnError)
	flags.SetOutput(messages)
	servers := flags.Int("servers", 3, "how many servers: 1 or 3")
	tickTime := flags.Duration("tick-time", 2*time.Second, "ZooKeeper's unit of time")
	ports := flags.String("ports", "", "client ports on 127.0.0.1, joined by commas (default 2181 and up where they are free)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	clientPorts, err := choosePorts(*ports, *servers)
	if err != nil {
		return err
	}
	e, err := ensemble.Start(ctx, ensemble.Options{
		Servers:              *servers,
		TickTime:             *tickTime,
		ClientPorts:          clientPorts,
		MaxClientConnections: -1,
	})
	if err != nil {
		return err
	}
	defer e.Close()
	fmt.Fprintln(out, strings.Join(e.ClientAddresses(), ","))
	fmt.Fprintln(messages, "ZooKeeper", ensemble.Version, "serves; Ctrl-C stops it and forgets everything")
	<-ctx.Done()
	return nil
}

// choosePorts reads the ports given, or takes ZooKeeper's own where they are free and leaves the rest to the system.
func choosePorts(given string, servers int) ([]int, error) {
	ports := make([]int, servers)
	if given == "" {
		for i := range ports {
			if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+i))); err == nil {
				ports[i] = firstPort + i
				_ = listener.Close()
			}
		}
		return ports, nil
	}
	words := strings.Split(given, ",")
	if len(words) != servers {
		return nil, fmt.Errorf("-ports %q: %d ports for %d servers", given, len(words), servers)
	}
	for i, word := range words {
		port, err := strconv.ParseUint(word, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("-ports %q: %w", given, err)
		}
		ports[i] = int(port)
	}
	return ports, nil
}
