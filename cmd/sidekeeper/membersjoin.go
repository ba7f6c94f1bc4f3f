package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	sidekeeper "github.com/sidekeeper/sidekeeper/clients/go"
)

// A memberRun runs one command while it is a member of a group.
type memberRun struct {
	reach         *reach
	group, member string
	command       []string
	metadata      []string
	onConflict    choice
	wait          time.Duration
	owner         string
	onLoss        choice
	killGrace     time.Duration
}

func newMembersJoinCommand(reach *reach) *cobra.Command {
	r := &memberRun{
		reach:      reach,
		onConflict: choice{values: []string{"reject", "wait", "replace"}},
		onLoss:     choice{values: []string{"term", "rejoin", "ignore"}},
	}
	command := &cobra.Command{
		Use:   "join GROUP MEMBER [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command that is a member of a group while it runs",
		Args:  r.takeArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return r.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&r.metadata, "metadata", nil, "what others shall know, as key=value; can be given again")
	flags.Var(&r.onConflict, "on-conflict", "what to do if the group has such a member: end with 75, wait for it to go, or take its place")
	flags.DurationVar(&r.wait, "wait", 0, "how long to wait for such a member to go at most (default: for ever)")
	flags.StringVar(&r.owner, "owner", "", "who the member is, for people (default: this host's name and the process's number)")
	flags.Var(&r.onLoss, "on-loss", "what becomes of the command when the membership is lost")
	flags.DurationVar(&r.killGrace, "kill-grace", 10*time.Second, "how long after SIGTERM the command gets SIGKILL")
	return command
}

func (r *memberRun) takeArguments(command *cobra.Command, args []string) error {
	if command.ArgsLenAtDash() != 2 || len(args) < 3 {
		return errors.New("say it like this: sidekeeper members join GROUP MEMBER -- COMMAND [ARGUMENT...]")
	}
	if r.onConflict.String() == "reject" && command.Flags().Changed("wait") {
		return errors.New("--wait is for --on-conflict wait or replace")
	}
	if r.wait < 0 || r.killGrace < 0 {
		return errors.New("a time cannot be negative")
	}
	r.group, r.member, r.command = args[0], args[1], args[2:]
	_, err := pairs(r.metadata)
	return err
}

// pairs reads what is given as key=value.
func pairs(words []string) (map[string]string, error) {
	read := map[string]string{}
	for _, word := range words {
		key, value, found := strings.Cut(word, "=")
		if _, twice := read[key]; twice || !found || key == "" {
			return nil, fmt.Errorf("--metadata %s: each as key=value, and each key once", word)
		}
		read[key] = value
	}
	return read, nil
}

func (r *memberRun) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	if _, err := exec.LookPath(r.command[0]); err != nil {
		return exitError{exitNoCommand, err}
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, slices.DeleteFunc(slices.Clone(forwarded), signal.Ignored)...)
	defer signal.Stop(signals)

	say, finish := sayAside(stderr)
	defer finish()
	client, err := r.reach.dial(r.reach.address) //nolint:contextcheck // it lives until Close
	if err != nil {
		return err
	}
	defer client.Close()
	membership, err := r.join(ctx, client, signals, say)
	if err != nil {
		return err
	}
	a := &attendant{memberRun: r, client: client, membership: membership, say: say}
	err = a.start(task{
		argv: r.command, environment: r.environment(membership), stdin: stdin, stdout: stdout, stderr: stderr,
	})
	if err != nil {
		return errors.Join(exitError{exitNoCommand, err}, r.leave(membership)) //nolint:contextcheck // see leave
	}
	a.run(ctx, signals)
	return a.outcome() //nolint:contextcheck // see leave
}

func (r *memberRun) environment(membership *sidekeeper.Membership) []string {
	return append(os.Environ(), "SIDEKEEPER_GROUP_NAME="+r.group, "SIDEKEEPER_MEMBER_NAME="+r.member,
		"SIDEKEEPER_INCARNATION="+strconv.FormatInt(membership.Incarnation(), 10))
}

// join waits until the command may be a member, or for a signal that ends programs.
func (r *memberRun) join(
	ctx context.Context, client *sidekeeper.Client, signals <-chan os.Signal, say func(string, ...any),
) (*sidekeeper.Membership, error) {
	waiting, cancel := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel(nil)
	listening.Go(func() { cancelOnSignal(waiting, signals, cancel) })
	return client.Join(waiting, r.group, r.member, r.options(say))
}

var conflicts = map[string]sidekeeper.OnConflict{
	"reject": sidekeeper.RejectMember, "wait": sidekeeper.WaitForMember, "replace": sidekeeper.ReplaceMember,
}

func (r *memberRun) options(say func(string, ...any)) sidekeeper.JoinOptions {
	metadata, _ := pairs(r.metadata) // takeArguments has seen it
	options := sidekeeper.JoinOptions{
		Owner: cmp.Or(r.owner, defaultOwner()), Metadata: metadata, OnConflict: conflicts[r.onConflict.String()],
		OnSuspended: func(remaining time.Duration) {
			say("no contact with the ensemble: still a member of %s for %v", r.group, remaining.Round(100*time.Millisecond))
		},
		OnResumed: func() { say("contact with the ensemble is back") },
	}
	if r.wait > 0 {
		options.Wait = &r.wait
	}
	return options
}

// leave takes no context: the command is over, whoever has gone away meanwhile.
func (r *memberRun) leave(membership *sidekeeper.Membership) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.reach.timeout)
	defer cancel()
	return membership.Leave(ctx)
}
