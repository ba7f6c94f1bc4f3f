package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// A victim is where a sidecar is attacked, and by whom.
type victim struct {
	Calls   string // address of its callers' listener, over TLS
	Metrics string
	Admin   string
	Papers  string // directory with the attacker's certificate
}

// An attack goes on until its context ends, and says then what it got.
type attack struct {
	name string
	does string
	run  func(ctx context.Context, on victim) (got string, err error)
}

func allAttacks() []attack {
	all := []attack{
		{"none", "nothing", peace},
		{"incomplete", "2,000 requests never completed, one connection", func(ctx context.Context, on victim) (string, error) {
			return keepIncomplete(ctx, on, 1, 2000)
		}},
		{"incomplete-many", "the same over 740 connections", func(ctx context.Context, on victim) (string, error) {
			return keepIncomplete(ctx, on, 740, 3)
		}},
		{"compressed", "2,000 compressed requests kept open", keepCompressed},
		{"streams", "740 connections, 1,024 streams asked for on each", keepStreams},
		{"silent", "3,000 silent connections before TLS", keepSilent},
		{"connects", "connections over TLS from another address, as many as it can", connectOnAndOn},
		{"http", "400 connections of metrics and the page, half of them silent", keepHTTP},
		{"directory", "32 loops of lists of a directory of 3.9 MB and of one too long", listDirectories},
		{"writes", "32 loops of writes of 900 kB", writeLarge},
		{"leases", "leases and watched keys, as many as it gets", takeLeases},
		{"unread", "watches of values of 900 kB that are never read", neverRead},
		{"calls", "64 loops of calls without a pause", callOnAndOn},
	}
	return append(all, attack{"together", "all of these", together(all)})
}

func namesOf(all []attack) (names []string) {
	for _, each := range all {
		names = append(names, each.name)
	}
	return names
}

func peace(ctx context.Context, _ victim) (string, error) {
	<-ctx.Done()
	return "", nil
}

// together does all attacks at once.
func together(all []attack) func(context.Context, victim) (string, error) {
	return func(ctx context.Context, on victim) (string, error) {
		return "", eachOf(len(all), len(all), func(i int) error {
			_, err := all[i].run(ctx, on)
			return err
		})
	}
}

// An attacker is this program again, as a process of its own.
type attacker struct {
	command *exec.Cmd
	orders  io.Closer // it ends when this is closed
	said    *bufio.Reader
}

// startAttack starts an attack. It leaves the processors to whoever wants them, so that what is measured is what it makes the sidecar do.
func startAttack(name string, on victim) (*attacker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	where, err := json.Marshal(on) //nolint:musttag // this program reads it
	if err != nil {
		return nil, err
	}
	a := &attacker{command: exec.Command(program, "-attack", name, "-victim", string(where))}
	a.command.Stderr = os.Stderr
	a.command.SysProcAttr = attributes()
	if a.orders, err = a.command.StdinPipe(); err != nil {
		return nil, err
	}
	said, err := a.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.said = bufio.NewReader(said)
	if err := a.command.Start(); err != nil {
		return nil, err
	}
	return a, yieldProcessors(a.command.Process.Pid)
}

// stop ends it, and returns what it got.
func (a *attacker) stop() (got string, err error) {
	a.orders.Close()
	late := time.AfterFunc(stopPatience, func() { a.command.Process.Kill() })
	defer late.Stop()
	text, _ := io.ReadAll(a.said)
	if err := a.command.Wait(); err != nil {
		return "", fmt.Errorf("attacker: %w", err)
	}
	return string(text), nil
}

// serveAttack is the other program. It attacks until its input ends.
func serveAttack(name, where string, input io.Reader, out io.Writer) error {
	var on victim
	if err := json.Unmarshal([]byte(where), &on); err != nil { //nolint:musttag // this program wrote it
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	for _, each := range allAttacks() {
		if each.name == name {
			got, err := each.run(ctx, on)
			fmt.Fprint(out, got)
			return err
		}
	}
	return fmt.Errorf("no attack is called %q", name)
}

// identity is what the attacker's certificate says.
func (v victim) identity() (*tls.Config, error) { return papersOf(v.Papers, "attacker") }

// dial opens a connection to the sidecar. The caller must close it.
func (v victim) dial() (*grpc.ClientConn, error) {
	config, err := v.identity()
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(v.Calls, grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(8<<20)))
}

// again does something so many times at once, again and again until ctx ends, each time after a pause.
func again(ctx context.Context, at int, rest time.Duration, do func(worker int)) {
	var workers sync.WaitGroup
	for worker := range at {
		workers.Go(func() {
			for ctx.Err() == nil {
				do(worker)
				if rest > 0 && pause(ctx, rest) != nil {
					return
				}
			}
		})
	}
	workers.Wait()
}

// keepSilent has as many connections open as it can on which nothing is ever said.
func keepSilent(ctx context.Context, on victim) (string, error) {
	return keepOpen(ctx, 3000, on.Calls, func(int) []byte { return nil })
}

// connectOnAndOn opens connections as fast as it can, and closes each when the sidecar has spoken.
func connectOnAndOn(ctx context.Context, on victim) (string, error) {
	config, err := on.identity()
	if err != nil {
		return "", err
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}, Config: config}
	var greeted, refused atomic.Int64
	again(ctx, 512, 0, func(int) {
		conn, err := dialer.DialContext(ctx, "tcp", on.Calls)
		if err != nil {
			refused.Add(1)
			return
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			refused.Add(1)
			return
		}
		greeted.Add(1)
	})
	return fmt.Sprintf("%d let in, %d refused", greeted.Load(), refused.Load()), nil
}

// keepHTTP connects to the listeners for HTTP: half say nothing, the others ask and do not read.
func keepHTTP(ctx context.Context, on victim) (got string, err error) {
	said := func(i int) []byte {
		return []byte([]string{"", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"}[i%2])
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = keepOpen(ctx, 200, on.Admin, said) })
	got, err = keepOpen(ctx, 200, on.Metrics, said)
	both.Wait()
	return got, err
}

// keepOpen keeps so many connections open, and opens another when one is closed.
func keepOpen(ctx context.Context, count int, address string, say func(i int) []byte) (string, error) {
	var opened, failed atomic.Int64
	again(ctx, count, 10*time.Millisecond, func(i int) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			failed.Add(1)
			return
		}
		opened.Add(1)
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		if _, err := conn.Write(say(i)); err != nil {
			return
		}
		if len(say(i)) > 0 {
			<-ctx.Done()
			return
		}
		_, _ = io.Copy(io.Discard, conn)
	})
	return fmt.Sprintf("%d connections opened, %d failed", opened.Load(), failed.Load()), nil
}

func papersOf(directory, name string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(directory, name+".crt"), filepath.Join(directory, name+".key"))
	if err != nil {
		return nil, err
	}
	authority, err := poolOf(filepath.Join(directory, "authority.crt"))
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: authority, ServerName: "sidecar", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
	}, nil
}
