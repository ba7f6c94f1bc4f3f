package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

func newConfigEditCommand(reach *reach) *cobra.Command {
	return entry("edit KEY", "Edit a key's value in an editor ($VISUAL, else $EDITOR, else vi)",
		cobra.ExactArgs(1), reach.completeKey, func(command *cobra.Command, args []string) error {
			e := &edit{reach: reach, command: command, key: args[0]}
			return e.run()
		})
}

// An edit is one key in an editor.
type edit struct {
	reach   *reach
	command *cobra.Command
	key     string
	before  *sidekeeper.Entry // nil if there is no such key
}

func (e *edit) run() error {
	if err := e.call(e.read); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "sidekeeper-edit-") // for this user alone
	if err != nil {
		return err
	}
	file := filepath.Join(folder, path.Base(e.key)) // its ending tells the editor what it is
	after, err := e.inEditor(file)
	if err == nil && e.before != nil && bytes.Equal(after, e.value()) {
		_, err = fmt.Fprintf(e.command.OutOrStdout(), "%s is unchanged\n", e.key)
		return errors.Join(err, os.RemoveAll(folder))
	}
	if err == nil {
		err = e.call(func(ctx context.Context, client *sidekeeper.Client) error { return e.write(ctx, client, after) })
	}
	if err != nil && e.changed(file) {
		return fmt.Errorf("%w; your text is kept in %s", err, file)
	}
	return errors.Join(err, os.RemoveAll(folder))
}

func (e *edit) call(do func(context.Context, *sidekeeper.Client) error) error {
	return e.reach.call(e.command.Context(), e.reach.address, do)
}

func (e *edit) read(ctx context.Context, client *sidekeeper.Client) error {
	entry, err := client.Config().GetLinearizable(ctx, e.key)
	switch {
	case errors.Is(err, sidekeeper.ErrKeyNotFound):
		return nil
	case err == nil:
		e.before = &entry
	}
	return err
}

// value is what the key has had.
func (e *edit) value() []byte {
	if e.before == nil {
		return nil
	}
	return e.before.Value
}

// inEditor lets a person edit the value in a file, and returns what is in it then.
func (e *edit) inEditor(file string) ([]byte, error) {
	value := e.value()
	if err := os.WriteFile(file, value, 0o600); err != nil {
		return nil, err
	}
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	program := exec.Command("/bin/sh", "-c", editor+` "$1"`, "sh", file) //nolint:gosec,noctx // what the user wants run
	program.Stdin, program.Stdout, program.Stderr = e.command.InOrStdin(), e.command.OutOrStdout(), e.command.ErrOrStderr()
	// Ctrl-C in an editor is the editor's affair.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	if err := program.Run(); err != nil {
		return nil, fmt.Errorf("editor %s: %w: nothing is written", editor, err)
	}
	after, err := os.ReadFile(file) //nolint:gosec // our own
	if !bytes.HasSuffix(value, []byte("\n")) {
		after = bytes.TrimSuffix(after, []byte("\n"))
	}
	return after, err
}

// changed says whether there is something of the person's in the file.
func (e *edit) changed(file string) bool {
	text, err := os.ReadFile(file) //nolint:gosec // our own
	return err == nil && !bytes.Equal(text, e.value())
}

// write writes what was edited if the key is as it was. Versions begin anew when a key is made anew: its making is compared
// first.
func (e *edit) write(ctx context.Context, client *sidekeeper.Client, value []byte) error {
	only := sidekeeper.IfMissing()
	if e.before != nil {
		only = sidekeeper.IfVersion(e.before.Version)
		now, err := client.Config().GetLinearizable(ctx, e.key)
		switch {
		case err == nil && now.CreatedRevision != e.before.CreatedRevision, errors.Is(err, sidekeeper.ErrKeyNotFound):
			return e.overtaken()
		case err != nil:
			return err
		}
	}
	written, err := client.Config().Put(ctx, e.key, value, only)
	switch {
	case errors.Is(err, sidekeeper.ErrPreconditionFailed):
		return e.overtaken()
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(e.command.OutOrStdout(), "%s has version %d\n", e.key, written.Version)
	return err
}

func (e *edit) overtaken() error {
	return exit.With(exit.NotObtained, fmt.Errorf("%s was changed in the meantime; nothing was written", e.key))
}
