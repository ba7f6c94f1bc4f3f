package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// writes are the requests of sidecars that change something.
var writes = link.Is(link.Create, link.Create2, link.CreateContainer, link.Delete, link.SetData, link.Multi)

// cutSidecar does something to the ways between a sidecar and the ensemble.
func cutSidecar(ctx context.Context, s *scene) error {
	host := s.host()
	defer s.fault(host.Target())()
	defer host.Heal()
	switch s.dice.IntN(7) {
	case 0:
		s.eachWay(host, func(way *link.Link) { way.Drop() })
		s.pause(ctx, s.expiry())
	case 1: // a handshake would keep the session, though its answer is lost
		s.eachWay(host, func(way *link.Link) { way.Drop(link.ToClient); way.Refuse() })
		s.pause(ctx, s.expiry())
	case 2:
		s.eachWay(host, func(way *link.Link) { way.Delay(150*time.Millisecond, 100*time.Millisecond) })
		s.pause(ctx, 2*s.Timeout)
	case 3:
		s.loseWrites(ctx, host, (*link.Link).CutReply)
	case 4:
		s.loseWrites(ctx, host, (*link.Link).CutRequest)
	case 5:
		s.eachWay(host, func(way *link.Link) { way.Slice(7) })
		s.pause(ctx, s.Timeout)
	case 6:
		return s.losePackets(ctx, host)
	}
	return nil
}

func (s *scene) eachWay(host *stage.Host, do func(*link.Link)) {
	for _, way := range host.ToServers {
		do(way)
	}
}

// losePackets has half of all packets lost between a sidecar and the ensemble.
func (s *scene) losePackets(ctx context.Context, host *stage.Host) error {
	for _, way := range host.ToServers {
		if err := way.Lose(2); err != nil {
			return err
		}
	}
	s.pause(ctx, 2*s.Timeout)
	return nil
}

// loseWrites cuts connections at writes: before they are done, or after and before the sidecar knows. Of most writes it lets
// pass, so that sessions survive and have to find out.
func (s *scene) loseWrites(ctx context.Context, host *stage.Host, cut func(*link.Link, func(link.Frame) bool, int) *link.Trap) {
	var traps []*link.Trap
	for _, way := range host.ToServers {
		every, seen := 10+s.dice.IntN(30), 0
		traps = append(traps, cut(way, func(f link.Frame) bool {
			if !writes(f) {
				return false
			}
			seen++
			return seen%every == 0
		}, -1))
	}
	s.pause(ctx, 2*s.Timeout)
	for _, trap := range traps {
		trap.Release()
	}
}

// killSidecar kills a sidecar, and starts another in its place.
func killSidecar(ctx context.Context, s *scene) error {
	host := s.host()
	defer s.fault(host.Target())()
	if err := s.restart(ctx, host); err != nil {
		return err
	}
	s.pause(ctx, s.expiry())
	return nil
}

// stopSidecars stops a sidecar in order, or all of them one after the other, and starts them again.
func stopSidecars(ctx context.Context, s *scene) error {
	hosts := []*stage.Host{s.host()}
	if s.dice.IntN(3) == 0 {
		hosts = s.Stage.Hosts
	}
	for _, host := range hosts {
		heal := s.fault(host.Target())
		host.Stop()
		if err := host.Start(); err != nil {
			return err
		}
		if err := host.AwaitReady(ctx); err != nil {
			return err
		}
		heal()
		if !s.pause(ctx, s.between(300*time.Millisecond, time.Second)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// shift is by how much a sidecar's clocks differ from those of the others, for one that has moved.
const shift = 100_000 // s

// shiftClocks starts a sidecar whose clocks show another time than those of the one before, and then one as before.
func shiftClocks(ctx context.Context, s *scene) error {
	host := s.host()
	defer s.fault(host.Target())()
	host.Wrap("unshare", "--time", fmt.Sprint("--boottime=", shift), fmt.Sprint("--monotonic=", shift), "--")
	if err := s.restart(ctx, host); err != nil {
		return err
	}
	ours, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		return err
	}
	if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/time", host.Process())); err != nil || theirs == ours {
		return fmt.Errorf("the sidecar's clocks are not shifted: %w", errors.Join(err, errNoTimeNamespace))
	}
	s.pause(ctx, s.expiry())
	host.Own()
	return s.restart(ctx, host)
}

var errNoTimeNamespace = errors.New("it needs a kernel that changes time namespaces with a program")

// restart kills a sidecar, and returns when another serves in its place.
func (s *scene) restart(ctx context.Context, host *stage.Host) error {
	host.Kill()
	if err := host.Start(); err != nil {
		return err
	}
	return host.AwaitReady(ctx)
}

// credentials are those of sidecars where they need any.
const credentials = "sidekeeper:secret"

func withCredentials(options *stage.Options) { options.Credentials = credentials }

// mistakeCredentials starts a sidecar with a password that is not the one with which the others write.
func mistakeCredentials(ctx context.Context, s *scene) error {
	host := s.host()
	defer s.fault(host.Target())()
	host.Kill()
	host.Pretend("sidekeeper:guessed")
	if err := host.Start(); err != nil {
		return err
	}
	s.pause(ctx, s.expiry())
	host.Own()
	return s.restart(ctx, host)
}

// suspendHost freezes everything on a host, as a hypervisor does, for longer than its leases last.
func suspendHost(ctx context.Context, s *scene) error {
	host := s.host()
	defer s.fault(host.Target())()
	var frozen []*stage.Client
	for _, client := range s.Stage.Present() {
		if client.Host == host {
			client.Freeze()
			frozen = append(frozen, client)
		}
	}
	host.Freeze()
	s.pause(ctx, 2*s.Timeout)
	for _, client := range frozen {
		client.Continue()
	}
	host.Continue()
	return nil
}

// deafen leaves the log of a sidecar unread.
func deafen(ctx context.Context, s *scene) error {
	host := s.host()
	hear := func() error { host.Hear(); return nil }
	return s.lose(ctx, host, func() error { host.Deafen(); return nil }, hear)
}

// lose has a sidecar lose the ensemble for longer than its leases last, and then serve for longer than anything may take, all of which while
// something else is wrong. Only the ensemble's loss counts as a fault: what else is wrong must concern no lock.
func (s *scene) lose(ctx context.Context, host *stage.Host, wrong, right func() error) error {
	testified, err := s.witness(ctx, host)
	if err != nil {
		return err
	}
	defer testified()
	if err := wrong(); err != nil {
		return err
	}
	heal := s.fault(host.Target())
	s.eachWay(host, func(way *link.Link) { way.Drop() })
	s.pause(ctx, s.expiry())
	host.Heal()
	heal()
	s.pause(ctx, s.Patience+s.expiry())
	return right()
}

func withStateDisks(options *stage.Options) { options.Disk = stage.StateDisk }

func withAuditDisks(options *stage.Options) { options.Disk = stage.AuditDisk }

// hangDisk has what a sidecar writes to its own disk wait.
func hangDisk(ctx context.Context, s *scene) error {
	host := s.host()
	return s.lose(ctx, host, host.FreezeDisk, host.ThawDisk)
}

// loseAudit has the disk of a sidecar's audit log hang, or be full, in turns.
func loseAudit(ctx context.Context, s *scene) error {
	if s.strikes%2 == 0 {
		return hangDisk(ctx, s)
	}
	host := s.host()
	return s.lose(ctx, host, host.FillDisk, host.EmptyDisk)
}

// A starving sidecar stands still for nine tenths of each slice.
const slice = 100 * time.Millisecond

// starve gives a sidecar a tenth of a processor for twice as long as its leases last.
func starve(ctx context.Context, s *scene) error {
	host := s.host()
	defer s.fault(host.Target())()
	defer host.Continue()
	for over := time.Now().Add(2 * s.Timeout); time.Now().Before(over); {
		host.Freeze()
		going := s.pause(ctx, slice*9/10)
		host.Continue()
		if !going || !s.pause(ctx, slice/10) {
			return context.Cause(ctx)
		}
	}
	return nil
}
