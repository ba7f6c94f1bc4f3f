// Package ensemble runs real ZooKeeper servers, for tests and for trying things out.
//
// [Start] starts one server or three, each a Java virtual machine of its own on the loopback interface. Every byte between
// two servers, and between a server and clients that use its Address, goes through a [link.Link], so that networks can be
// cut in any way, one direction at a time; processes can be killed, frozen and started again.
//
// The servers are ZooKeeper's own, got with Maven once and kept in the user's cache directory; see [JarsVariable] for
// others. They do not sync to disk, so that they survive being killed but not a power cut, and a server without a leader
// looks for one at least every second; all else that Options does not name is as ZooKeeper has it by default, with TTL
// nodes enabled and reconfiguration disabled.
//
// On Linux servers die with the process that started them, however that ends.
package ensemble

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// An Ensemble is a set of servers that run until it is closed.
type Ensemble struct {
	options         Options
	directory       string
	temporary       bool
	java, classPath string
	lines           *lineWriter // nil if logs go to files only
	nursery         *process.Nursery
	servers         []*Server
	closing         sync.Once
}

// Start starts an ensemble and returns when all its servers serve clients. The caller must close it. The context bounds
// the start only.
//
// The first start on a machine may take as long as Maven takes to download ZooKeeper. If no ZooKeeper or no Java is to be
// had, the error says in one line what to install.
func Start(ctx context.Context, options Options) (*Ensemble, error) {
	e, err := prepare(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("ensemble: %w", err)
	}
	if err := e.start(ctx); err != nil {
		err = fmt.Errorf("%w%s", err, e.logs())
		e.Close()
		return nil, err
	}
	return e, nil
}

// prepare does all that can be done before a process is started.
func prepare(ctx context.Context, options Options) (*Ensemble, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	e := &Ensemble{options: options, nursery: process.NewNursery()}
	if options.LogTo != nil {
		e.lines = &lineWriter{to: options.LogTo}
	}
	for _, step := range []func(context.Context) error{e.findPrograms, e.makeDirectory, e.makeServers, e.connect} {
		if err := step(ctx); err != nil {
			e.Close()
			return nil, err
		}
	}
	return e, nil
}

func (e *Ensemble) findPrograms(ctx context.Context) (err error) {
	if e.java, err = java(); err != nil {
		return err
	}
	e.classPath, err = classPath(ctx)
	return err
}

func (e *Ensemble) makeDirectory(context.Context) (err error) {
	if e.options.Dir != "" {
		e.directory, err = filepath.Abs(e.options.Dir)
		return err
	}
	e.directory, err = os.MkdirTemp("", "sidekeeper-ensemble-")
	e.temporary = err == nil
	return err
}

func (e *Ensemble) makeServers(context.Context) error {
	for id := 1; id <= e.options.Servers; id++ {
		s, err := newServer(e, id)
		if err != nil {
			return err
		}
		e.servers = append(e.servers, s)
	}
	return nil
}

// start starts all servers and waits until they serve, or one of them ends.
func (e *Ensemble) start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	for _, s := range e.servers {
		if err := s.start(); err != nil {
			return err
		}
		p := s.current()
		watching.Go(func() {
			select {
			case <-p.Exited():
				cancel(fmt.Errorf("server %d has ended: %v", s.id, p.State()))
			case <-ctx.Done():
			}
		})
	}
	return e.AwaitAll(ctx)
}

// Add starts one more server, which joins those that run when a reconfiguration adds its [Server.Member]. It has the next id. It wants
// Reconfigurable, and must not be called while other methods run. Links and AwaitQuorum are for the servers of the start only.
func (e *Ensemble) Add() (*Server, error) {
	s, err := newServer(e, len(e.servers)+1)
	if err != nil {
		return nil, err
	}
	e.servers = append(e.servers, s)
	err = s.start()
	return s, err
}

// logs is the last lines of the servers' logs, for an error.
func (e *Ensemble) logs() string {
	const most = 5
	var text strings.Builder
	for _, s := range e.servers {
		log, _ := os.ReadFile(s.Log()) // one that was not started has none
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		for _, line := range lines[max(0, len(lines)-most):] {
			fmt.Fprintf(&text, "\n  server %d: %s", s.id, line)
		}
	}
	return text.String()
}

// Servers is all servers, by id.
func (e *Ensemble) Servers() []*Server { return append([]*Server(nil), e.servers...) }

// Server is the server with an id, from 1 to the number of servers; with any other it panics.
func (e *Ensemble) Server(id int) *Server { return e.servers[id-1] }

// ClientAddresses is where clients reach the servers, by id. They lead through the servers' client links.
func (e *Ensemble) ClientAddresses() []string {
	var addresses []string
	for _, s := range e.servers {
		addresses = append(addresses, s.Address())
	}
	return addresses
}

// Close kills the servers, closes the links and removes what was temporary. When it returns nothing is left. It may be
// called twice, and not while other methods run.
func (e *Ensemble) Close() {
	e.closing.Do(func() {
		var ending sync.WaitGroup
		for _, s := range e.servers {
			ending.Go(s.Kill)
		}
		ending.Wait()
		e.nursery.Close()
		for _, s := range e.servers {
			s.close()
		}
		if e.temporary {
			os.RemoveAll(e.directory)
		}
	})
}
