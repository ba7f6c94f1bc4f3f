// Package stage is where a fault test plays: a real ensemble of three, three hosts with a sidecar and client processes each,
// and the stores that the locks guard. Everything between them leads through links that can be cut, and every process can be
// frozen and killed.
package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/store"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// Hosts is how many hosts there are, and Slots how many client processes run at the same time on all of them.
const (
	Hosts = 3
	Slots = 12
)

// Options say what to put on the stage.
type Options struct {
	Sidecar  string   // the program
	Sleeper  string   // the same, but for a clock that Host.Sleep sets forward
	Caller   []string // the command of a client process
	Locks    string   // which locks clients use
	Ensemble ensemble.Options
	Flags    []string // of every sidecar, beside those that follow from the ensemble and the play
	Disk     Disk     // what each sidecar keeps on a disk of its own; empty for nothing. Needs root
	Names    bool     // sidecars know the servers by name, each from a name server of its own. Needs root
	// Ahead is by how much the first sidecar's wall clock is ahead, and the second's late. It takes a Sleeper as the program.
	Ahead time.Duration
	// Credentials are the user and the password, with a colon between, that sidecars show to the ensemble; empty for none.
	Credentials string
}

// A Play is what happens on the stage between two clean-ups.
type Play struct {
	Folder    string          // for histories and logs
	History   *history.Writer // the conductor's
	Stores    *history.Writer // the stores'
	Prefix    string          // of all names
	Timeout   time.Duration   // of sessions
	Seed      uint64
	Workloads []string
	Resuming  bool // sidecars keep what leases outlive them by
	// Callers are the commands of client processes, by rank, where all call over the hosts' sockets; nil for the usual ones.
	Callers [][]string
}

// A Stage is built once and played on many times, by one play at a time.
type Stage struct {
	Ensemble *ensemble.Ensemble
	Hosts    []*Host
	Stores   *store.Server

	options   Options
	directory string
	nursery   *process.Nursery
	play      Play

	mu      sync.Mutex
	clients []*Client // all of this play, also those that have ended
	strikes int       // faults in this play
}

// Build starts an ensemble and the stores. The caller must close the stage.
func Build(ctx context.Context, options Options) (s *Stage, err error) {
	s = &Stage{options: options, nursery: process.NewNursery()}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.directory, err = os.MkdirTemp("", "chaos-"); err != nil {
		return nil, err
	}
	if s.Stores, err = store.Serve(s.storesAddress()); err != nil {
		return nil, err
	}
	if s.Ensemble, err = ensemble.Start(ctx, options.Ensemble); err != nil {
		return nil, err
	}
	for number := 1; number <= Hosts; number++ {
		host, err := newHost(s, number)
		if err != nil {
			return nil, err
		}
		s.Hosts = append(s.Hosts, host)
	}
	return s, nil
}

func (s *Stage) storesAddress() string { return filepath.Join(s.directory, "stores") }

// Close ends everything and removes what is left.
func (s *Stage) Close() {
	s.Clear()
	for _, host := range s.Hosts {
		host.close()
	}
	if s.Ensemble != nil {
		s.Ensemble.Close()
	}
	if s.Stores != nil {
		s.Stores.Close()
	}
	s.nursery.Close()
	os.RemoveAll(s.directory)
}

// Begin starts the sidecars, and returns when they reach the ensemble. Clients are started by Populate.
func (s *Stage) Begin(ctx context.Context, play Play) error {
	s.play, s.strikes = play, 0
	s.Stores.Begin(play.Stores)
	return s.eachHost(func(host *Host) error {
		if err := host.Start(); err != nil {
			return err
		}
		return host.AwaitReady(ctx)
	})
}

// eachHost does something to all hosts at the same time.
func (s *Stage) eachHost(do func(*Host) error) error {
	failed := make([]error, len(s.Hosts))
	var all sync.WaitGroup
	for i, host := range s.Hosts {
		all.Go(func() { failed[i] = do(host) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// Clear kills all sidecars and clients.
func (s *Stage) Clear() {
	for _, client := range s.Clients() {
		client.process.Kill()
	}
	for _, host := range s.Hosts {
		host.current().Kill()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = nil
}

// Repair undoes all faults, and returns when everything serves again.
func (s *Stage) Repair(ctx context.Context) error {
	for _, client := range s.Clients() {
		client.process.Continue()
	}
	if err := s.repairEnsemble(ctx); err != nil {
		return err
	}
	return s.eachHost(func(host *Host) error { return host.repair(ctx) })
}

func (s *Stage) repairEnsemble(ctx context.Context) error {
	s.Ensemble.Heal()
	for _, server := range s.Ensemble.Servers() {
		server.Continue()
		if server.ProcessID() != 0 {
			continue
		}
		if err := server.Restart(); err != nil {
			return fmt.Errorf("server %d: %w", server.ID(), err)
		}
	}
	return s.Ensemble.AwaitAll(ctx)
}

// Note notes something in the play's history.
func (s *Stage) Note(event history.Event) { s.play.History.Append(event) }

// Fault notes that something goes wrong, and returns what notes that it is over.
func (s *Stage) Fault(nemesis, target string) (heal func()) {
	s.mu.Lock()
	s.strikes++
	s.mu.Unlock()
	s.Note(history.Event{Kind: history.Fault, Nemesis: nemesis, Target: target})
	return func() { s.Note(history.Event{Kind: history.Heal, Nemesis: nemesis, Target: target}) }
}

// Strikes is how many faults there were in this play.
func (s *Stage) Strikes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strikes
}

// Names of what faults are done to.
func target(kind string, number int) string { return fmt.Sprintf("%s/%d", kind, number) }

// ServerTarget is the name of a server as a target.
func ServerTarget(id int) string { return target("server", id) }
