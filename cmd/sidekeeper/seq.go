package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newSequenceCommand(reach *reach) *cobra.Command {
	return parent("seq", "Take numbers from sequences, and manage sequences",
		newSequenceNextCommand(reach),
		entry("ls [PREFIX]", "List the sequences", cobra.MaximumNArgs(1), nil,
			listing(reach, (*sidekeeper.Client).Sequences, reach.showSequences)),
		entry("get NAME", "Show the last number that was handed out or reserved", cobra.ExactArgs(1), reach.completeSequence,
			asking(reach, lastNumber, reach.showSequence)),
		newSequenceCreateCommand(reach),
		entry("advance NAME LAST", "Advance a sequence past a number that is already in use (operators' socket)", cobra.ExactArgs(2),
			reach.completeSequence, reach.advanceSequence),
		entry("rm NAME", "Delete a sequence", cobra.ExactArgs(1), reach.completeSequence, asking(reach, removeSequence, reach.showRemoval)),
	)
}

// A take is which numbers to take and how to show them.
type take struct {
	count        int32
	relaxed, hex bool
}

func newSequenceNextCommand(reach *reach) *cobra.Command {
	var wanted take
	var command *cobra.Command
	next := func(ctx context.Context, client *sidekeeper.Client, args []string) (sidekeeper.Numbers, error) {
		sequence := client.Sequence(args[0])
		if wanted.relaxed {
			if err := reach.unguarded(command, "--relaxed"); err != nil {
				return sidekeeper.Numbers{}, err
			}
			sequence = sequence.Relaxed()
		}
		return sequence.NextRange(ctx, wanted.count)
	}
	command = entry("next NAME", "Take the next numbers of a sequence, one on each line", cobra.ExactArgs(1), reach.completeSequence,
		asking(reach, next, func(to io.Writer, numbers sidekeeper.Numbers) error {
			return reach.showNumbers(to, numbers, wanted.hex)
		}))
	wanted.count = 1
	command.Flags().VarP(number(&wanted.count, 1, 1_000_000), "count", "n", "count of numbers: 1 to 1,000,000")
	command.Flags().BoolVar(&wanted.hex, "hex", false, "show 16 hexadecimal digits (not in json)")
	command.Flags().BoolVar(&wanted.relaxed, "relaxed", false, "unique numbers without an order")
	reach.addGuardFlag(command)
	return command
}

func (r *reach) showNumbers(to io.Writer, numbers sidekeeper.Numbers, hex bool) error {
	if r.json() {
		return show.Message(to, &sequencev1.NextResponse{
			First: numbers.First, Last: numbers.Last, Incarnation: numbers.Incarnation,
		})
	}
	lines := bufio.NewWriter(to)
	for number := range numbers.All() {
		if hex {
			_, _ = fmt.Fprintf(lines, "%016x\n", uint64(number)) // Flush says the same
		} else {
			_, _ = fmt.Fprintln(lines, number)
		}
	}
	return lines.Flush()
}

func (r *reach) showSequences(to io.Writer, entries []*sidekeeper.SequenceEntry) error {
	sequences := each(entries, wireSequence)
	return tabulate(r, to, &sequencev1.ListResponse{Sequences: sequences}, "NAME LAST INCARNATION NOTES", sequences, sequenceRow)
}

func sequenceRow(sequence *sequencev1.Sequence) []string {
	last, notes := strconv.FormatInt(sequence.GetLastIssued(), 10), ""
	if sequence.GetMalformed() {
		last, notes = "-", "no sequence: not 8 bytes"
	}
	return []string{show.Printable(sequence.GetName()), last, strconv.FormatInt(sequence.GetIncarnation(), 10), notes}
}

func (r *reach) completeSequence(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return complete(r, command, args, begun, (*sidekeeper.Client).Sequences, func(s *sidekeeper.SequenceEntry) string { return s.Name })
}
