// Ensemble starts a ZooKeeper ensemble on this machine for trying things out, and stops it on Ctrl-C.
package main

import (
	"context"
	"errors"
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

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// firstPort is the port of the first server, if it is free.
const firstPort = 2181

// run is the program.
func run(ctx context.Context, arguments []string, output, problems io.Writer) error {
	options, err := parse(arguments, problems)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	e, err := ensemble.Start(ctx, options)
	if ctx.Err() != nil {
		return nil // interrupted while it started
	}
	if err != nil {
		return err
	}
	defer e.Close()
	introduce(output, e, options.TickTime)
	<-ctx.Done()
	fmt.Fprintln(output, "Stopping.")
	return nil
}

// about is the help above the flags.
const about = `Start a ZooKeeper ensemble on this machine, for trying things out,
and stop it with SIGTERM or Ctrl-C.
It takes Java (that of JAVA_HOME, else on the PATH) and ZooKeeper: from the folder of jars that
SIDEKEEPER_ZOOKEEPER_JARS names, else by Maven, which gets it once, else of the system's package.

It prints where the servers listen and what to try with them to standard output, and
removes their data when it is stopped. A sidecar towards it needs the same --tick-time.

Exits with
  0   stopped, or shown this
  1   called in the wrong way, or the servers do not start: the error says why

Examples:
  ensemble
  ensemble --servers 1 --tick-time 200ms
  ensemble --ports 2181,2182,2183

Flags:
`

// parse reads the command line.
func parse(arguments []string, problems io.Writer) (ensemble.Options, error) {
	flags := flag.NewFlagSet("ensemble", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.Usage = func() {
		fmt.Fprint(problems, about)
		flags.PrintDefaults()
	}
	servers := flags.Int("servers", 3, "how many servers: 1 or 3")
	tickTime := flags.Duration("tick-time", 2*time.Second, "ZooKeeper's unit of time; sessions time out after 2 to 20 of it")
	list := flags.String("ports", "", "ports for clients, as 2181,2182,2183 (default: these, or the system's choice for those taken)")
	if err := flags.Parse(arguments); err != nil {
		return ensemble.Options{}, err
	}
	if flags.NArg() > 0 {
		return ensemble.Options{}, fmt.Errorf("ensemble takes no arguments, but got %q", flags.Args())
	}
	ports := freePorts(firstPort, *servers)
	if *list != "" {
		var err error
		if ports, err = parsePorts(*list, *servers); err != nil {
			return ensemble.Options{}, err
		}
	}
	return ensemble.Options{Servers: *servers, TickTime: *tickTime, ClientPorts: ports}, nil
}

// parsePorts reads a list of as many ports as there are servers.
func parsePorts(list string, servers int) ([]int, error) {
	var ports []int
	for text := range strings.SplitSeq(list, ",") {
		number, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
		if err != nil {
			return nil, fmt.Errorf("--ports: %q is no port", text)
		}
		ports = append(ports, int(number))
	}
	if len(ports) != servers {
		return nil, fmt.Errorf("--ports: %d ports for %d servers", len(ports), servers)
	}
	return ports, nil
}

// freePorts is as many ports from the first on, with 0 in place of those that are taken.
func freePorts(first, count int) []int {
	var ports []int
	for i := range count {
		port := first + i
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			ports = append(ports, 0)
			continue
		}
		listener.Close()
		ports = append(ports, port)
	}
	return ports
}

// introduce says what runs and what can be done with it.
func introduce(output io.Writer, e *ensemble.Ensemble, tickTime time.Duration) {
	addresses := e.ClientAddresses()
	all := strings.Join(addresses, ",")
	fmt.Fprintf(output, "ZooKeeper is up: %s\n\n", all)
	for _, s := range e.Servers() {
		fmt.Fprintf(output, "  server %d: %s, process %d, log %s\n", s.ID(), s.Address(), s.ProcessID(), s.Log())
	}
	host, port, _ := net.SplitHostPort(addresses[0]) // an address of a listener is well formed
	fmt.Fprintf(output, `
Things to try:
  sidekeeper serve --zookeeper %s --tick-time %v --listen unix:///tmp/sidekeeper.sock --operator-listen ""
  echo srvr | nc %s %s    # which server leads, and how it is
  kill -STOP PROCESS          # freeze a server, as a long garbage collection does
  kill -CONT PROCESS          # let it go on
  kill -KILL PROCESS          # lose a server for good; two of three are enough

Ctrl-C stops all and removes their data.
`, all, tickTime, host, port)
}
