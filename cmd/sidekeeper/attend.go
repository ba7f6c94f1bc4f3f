package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	sidekeeper "github.com/sidekeeper/sidekeeper/clients/go"
)

// An attendant looks after a command that is a member of a group.
type attendant struct {
	*memberRun
	client     *sidekeeper.Client
	child      *child
	membership *sidekeeper.Membership
	say        func(string, ...any)

	ended bool // the command got a signal because the membership was lost
}

// pauseToRejoin lies between two attempts to join again.
const pauseToRejoin = time.Second

// start starts the command. If it does not live without its membership, the guardian knows of that and keeps the connection
// on which it hangs.
func (a *attendant) start(t task) (err error) {
	t.until = forever
	if a.onLoss.String() == "term" {
		if t.connection, err = a.reach.line.hold(); err != nil {
			return err
		}
		t.until = a.until()
	}
	adoptOrphans() // of a guardian that is killed
	a.child, err = startChild(t)
	return err
}

// extend lets the command live for longer while the membership is valid for longer.
func (a *attendant) extend() {
	if until := a.until(); a.membership.Valid() {
		a.child.keepUntil(until)
	}
}

// until is by when the guardian has to kill on its own account, by what is known of the membership now.
func (a *attendant) until() time.Duration { return bootTime() + a.membership.ValidFor() + a.killGrace }

// run returns when the command has ended.
func (a *attendant) run(ctx context.Context, signals <-chan os.Signal) {
	joining, stop := context.WithCancel(context.WithoutCancel(ctx))
	var joiners sync.WaitGroup
	defer joiners.Wait()
	defer stop()
	joined := make(chan *sidekeeper.Membership, 1)

	extending := time.NewTicker(betweenExtensions)
	defer extending.Stop()
	cancelled, lost := ctx.Done(), a.membership.Done()
	var kill <-chan time.Time
	for {
		select {
		case got := <-signals:
			a.child.signal(got.(syscall.Signal)) //nolint:forcetypeassert // every signal of this system is one
		case <-cancelled:
			cancelled = nil
			a.child.signal(syscall.SIGTERM)
		case <-lost:
			lost = nil
			a.say("%s", explain(a.membership.Err(), a.reach.last))
			switch {
			case a.rejoins():
				joiners.Go(func() { a.rejoin(joining, joined) })
			case a.onLoss.String() != "ignore":
				a.terminate()
				kill = time.After(a.killGrace)
			}
		case a.membership = <-joined:
			lost = a.membership.Done()
		case <-kill:
			a.kill()
		case <-extending.C:
			a.extend()
		case <-a.child.exited:
			a.takeLast(&joiners, stop, joined)
			return
		}
	}
}

// takeLast takes a membership that came as the command ended.
func (a *attendant) takeLast(joiners *sync.WaitGroup, stop func(), joined <-chan *sidekeeper.Membership) {
	stop()
	joiners.Wait()
	select {
	case a.membership = <-joined:
	default:
	}
}

// rejoins says whether to join again: not if somebody wants the member to be gone.
func (a *attendant) rejoins() bool {
	err := a.membership.Err()
	wanted := errors.Is(err, sidekeeper.ErrMemberReplaced) || errors.Is(err, sidekeeper.ErrMemberRemoved)
	return a.onLoss.String() == "rejoin" && !wanted
}

// rejoin tries until it works or ctx ends. It waits for what may be its own last incarnation.
func (a *attendant) rejoin(ctx context.Context, joined chan<- *sidekeeper.Membership) {
	options := a.options(a.say)
	options.Wait = nil
	if options.OnConflict == sidekeeper.RejectMember {
		options.OnConflict = sidekeeper.WaitForMember
	}
	for ctx.Err() == nil {
		membership, err := a.client.Join(ctx, a.group, a.member, options)
		if err == nil {
			a.say("a member of %s again, as %d", a.group, membership.Incarnation())
			joined <- membership
			return
		}
		select {
		case <-time.After(pauseToRejoin):
		case <-ctx.Done():
		}
	}
}

// terminate asks the command to end because of its membership.
func (a *attendant) terminate() {
	if a.child.force(syscall.SIGTERM) {
		a.ended = true
	}
}

// kill ends the command, with all that it has started, because of its membership.
func (a *attendant) kill() {
	if a.child.kill(killTime) {
		a.ended = true
	}
}

// outcome is what the command came to. That leaving was not confirmed is no failure of the command.
func (a *attendant) outcome() error {
	left := a.leave(a.membership)
	if a.ended {
		return exitError{exitLost, errors.New("the command ended since it was no member of " + a.group + " any more")}
	}
	if left != nil && !errors.Is(left, sidekeeper.ErrLost) {
		a.say("%s", explain(left, a.reach.last))
	}
	if code := a.child.exitCode(); code != 0 {
		return exitError{code: code}
	}
	return nil
}
