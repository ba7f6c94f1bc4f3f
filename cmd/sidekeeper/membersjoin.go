package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

// A memberRun runs one command while it is a member of a group.
type memberRun struct {
	claim      supervise.Member
	command    []string
	metadata   []string
	onConflict choice
	wait       time.Duration
	onLoss     choice
}

func newMembersJoinCommand(reach *reach) *cobra.Command {
	r := &memberRun{
		onConflict: choice{values: []string{"reject", "wait", "replace"}},
		onLoss:     choice{values: []string{"term", "rejoin", "ignore"}},
	}
	command := &cobra.Command{
		Use:   "join GROUP MEMBER [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command as a member of a group",
		Args:  r.takeArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return reach.runUnder(command, &r.claim, r.command)
		},
	}
	flags := command.Flags()
	flags.StringArrayVar(&r.metadata, "metadata", nil, "metadata that other members see, as key=value; repeatable")
	flags.Var(&r.onConflict, "on-conflict", "what to do if the group already has this member: exit with 75, wait for it to leave, or replace it")
	flags.Var(span(&r.wait, 0, forever), "wait", "maximum time to wait for it to leave (default: no limit)")
	flags.StringVar(&r.claim.Options.Owner, "owner", "", "owner of the member, for people (default: this host's name and the process ID)")
	flags.Var(&r.onLoss, "on-loss", "what happens to the command when the membership is lost")
	r.claim.KillGrace = 10 * time.Second
	flags.Var(span(&r.claim.KillGrace, 0, forever), "kill-grace", "time after SIGTERM at which the command gets SIGKILL")
	reach.addGuardFlag(command)
	return command
}

func (r *memberRun) takeArguments(command *cobra.Command, args []string) (err error) {
	if command.ArgsLenAtDash() != 2 || len(args) < 3 {
		return errors.New("usage: sidekeeper members join GROUP MEMBER -- COMMAND [ARGUMENT...]")
	}
	if r.onConflict.String() == "reject" && command.Flags().Changed("wait") {
		return errors.New("--wait is for --on-conflict wait or replace")
	}
	r.claim.Group, r.claim.Name, r.command = args[0], args[1], args[2:]
	r.claim.OnLoss = r.onLoss.String()
	options := &r.claim.Options
	options.OnConflict, options.Owner = conflicts[r.onConflict.String()], cmp.Or(options.Owner, supervise.DefaultOwner())
	if r.wait > 0 {
		options.Wait = &r.wait
	}
	options.Metadata, err = pairs(r.metadata)
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

var conflicts = map[string]sidekeeper.OnConflict{
	"reject": sidekeeper.RejectMember, "wait": sidekeeper.WaitForMember, "replace": sidekeeper.ReplaceMember,
}
