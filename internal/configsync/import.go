package configsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// An Import makes the keys of a prefix equal to what is read.
type Import struct {
	Prefix        string
	Prune, DryRun bool
	JSON          bool // for what Run writes

	wanted entries
}

// Read reads what is wanted from a folder, from a file of YAML, or from the input for -.
func (i *Import) Read(stdin io.Reader, source string) (err error) {
	if i.wanted, err = readSource(stdin, source); err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	for name, value := range i.wanted {
		if err := checkEntry(keyBelow(i.Prefix, name), value); err != nil {
			return err
		}
	}
	return nil
}

func readSource(stdin io.Reader, source string) (entries, error) {
	if source == "-" {
		return readYAML(stdin)
	}
	info, err := os.Stat(source)
	if err != nil {
		return nil, errors.Unwrap(err) // it names the file again
	}
	if info.IsDir() {
		return readEntries(source)
	}
	file, err := os.Open(source) //nolint:gosec // the user's choice
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer file.Close()
	return readYAML(file)
}

// maxPlans is how often it is begun anew since somebody else writes the same keys.
const maxPlans = 10

// Run writes what differs, and tells it.
func (i *Import) Run(ctx context.Context, config *sidekeeper.Config, out io.Writer) error {
	var done []step
	for attempt := 1; ; attempt++ {
		stored, err := Collect(config.List(ctx, i.Prefix))
		if err != nil {
			return err
		}
		steps, err := plan(i.Prefix, stored, i.wanted, i.Prune)
		if err != nil {
			return exit.UsageError(err)
		}
		if i.DryRun {
			return i.show(out, steps)
		}
		steps, err = commitAll(ctx, config, steps)
		done = append(done, steps...)
		if err == nil || attempt == maxPlans || !overtaken(err) {
			return errors.Join(err, i.show(out, done))
		}
	}
}

// overtaken says whether a commit failed since the plan was not up to date, or may have been carried out.
func overtaken(err error) bool {
	return slices.ContainsFunc([]error{
		sidekeeper.ErrPreconditionFailed, sidekeeper.ErrKeyNotFound, sidekeeper.ErrKeyHasChildren, sidekeeper.ErrOutcomeUnknown,
	}, func(cause error) bool { return errors.Is(err, cause) })
}

// show tells what was done, or what would be.
func (i *Import) show(to io.Writer, steps []step) error {
	type shown struct {
		Action string `json:"action"`
		Key    string `json:"key"`
	}
	keys := []shown{}
	for _, step := range steps {
		keys = append(keys, shown{step.action, step.key})
	}
	if i.JSON {
		return show.JSON(to, map[string]any{"steps": keys, "dryRun": i.DryRun})
	}
	for _, key := range keys {
		if _, err := fmt.Fprintf(to, "%-6s  %s\n", key.Action, show.Printable(key.Key)); err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		_, err := fmt.Fprintln(to, "nothing differs")
		return err
	}
	return nil
}
