package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// A Client is a client process.
type Client struct {
	Number int
	Slot   int
	Host   *Host

	stage   *Stage
	process *process.Process
	input   io.WriteCloser
	killed  bool
}

// Populate starts a client in each slot.
func (s *Stage) Populate() error {
	for slot := range Slots {
		if err := s.fill(slot); err != nil {
			return err
		}
	}
	return nil
}

// fill starts a client in a slot. Slots are spread over the hosts; in each host one of four calls over TCP.
func (s *Stage) fill(slot int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Client{Number: len(s.clients) + 1, Slot: slot, Host: s.Hosts[slot%Hosts], stage: s}
	log, err := os.OpenFile(s.clientLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	program := s.options.Caller
	if s.play.Callers != nil {
		program = s.play.Callers[c.Rank()%len(s.play.Callers)]
	}
	command := exec.Command(program[0], program[1:]...)
	command.Stderr = log
	if c.input, err = command.StdinPipe(); err != nil {
		return err
	}
	if c.process, err = s.nursery.Start(command, log); err != nil {
		return err
	}
	s.clients = append(s.clients, c)
	return json.NewEncoder(c.input).Encode(c.order())
}

func (s *Stage) clientLog() string { return filepath.Join(s.play.Folder, "clients.log") }

func (c *Client) order() caller.Order {
	play := c.stage.play
	address := c.Host.Address()
	overTCP := c.Rank() == 0 && play.Callers == nil
	if overTCP {
		address = c.Host.Calls.Address()
	}
	return caller.Order{
		Client: c.Number, Slot: c.Slot, Slots: Slots, Rank: c.Rank(), Lending: c.Host.Lending.Address(), Borrowing: c.borrowing(),
		Operators: c.Host.Operators(), Resumes: play.Resuming && !overTCP,
		Sidecar: c.Host.Number, Address: address,
		Locks: c.stage.options.Locks, Servers: c.Host.Servers(), Stores: c.stage.storesAddress(),
		Histories: play.Folder, Prefix: play.Prefix, Timeout: play.Timeout,
		Ahead: history.Ahead(), Seed: play.Seed + uint64(c.Number), Workloads: play.Workloads,
	}
}

// Rank is which client of its host it is.
func (c *Client) Rank() int { return c.Slot / Hosts }

// borrowing is where the client's connections lead that hold locks with the lease of another one.
func (c *Client) borrowing() string {
	if c.Rank() == caller.Straight {
		return c.Host.Lending.Address()
	}
	return c.Host.Borrowing.Address()
}

// Clients are all clients of this play, by number, also those that have ended.
func (s *Stage) Clients() []*Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.clients)
}

// Present are the clients that have not been killed.
func (s *Stage) Present() []*Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.clients), func(c *Client) bool { return c.killed })
}

// Target is the name of the client as a target of faults.
func (c *Client) Target() string { return target("client", c.Number) }

// Freeze suspends the client until Continue.
func (c *Client) Freeze() { c.process.Freeze() }

// Continue ends Freeze.
func (c *Client) Continue() { c.process.Continue() }

// Kill ends the client at once. Its slot is empty until it is filled again.
func (c *Client) Kill() {
	alive := history.Now()
	c.process.Kill()
	c.stage.mu.Lock()
	c.killed = true
	c.stage.mu.Unlock()
	c.stage.Note(history.Event{Kind: history.Killed, Target: c.Target(), From: alive})
}

// Replace starts another client in the slot of one that was killed.
func (c *Client) Replace() error { return c.stage.fill(c.Slot) }

// Dismiss asks all clients to stop, and returns when they have. Those that do not in time are killed, and the error says
// which, and which have failed.
func (s *Stage) Dismiss(patience time.Duration) error {
	late, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	present := s.Present()
	for _, c := range present {
		c.input.Close()
	}
	var failed error
	for _, c := range present {
		select {
		case <-c.process.Exited():
		case <-late.Done():
			failed = fmt.Errorf("%s does not stop within %v", c.Target(), patience)
			c.Kill()
			continue
		}
		if !c.process.State().Success() {
			failed = fmt.Errorf("%s: %v", c.Target(), c.process.State())
		}
	}
	return failed
}
