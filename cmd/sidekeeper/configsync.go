package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A configSync keeps a folder equal to a prefix.
type configSync struct {
	reach          *reach
	prefix, where  string
	mode           fileMode
	once           bool
	signal, exec   string
	stdout, stderr io.Writer

	news chan struct{}
	mu   sync.Mutex
	view map[string]*sidekeeper.Entry // what the watch has told
	old  bool                         // the view may be out of date, or is not complete yet
}

func newConfigSyncCommand(reach *reach) *cobra.Command {
	s := &configSync{reach: reach, mode: 0o644, old: true, news: make(chan struct{}, 1)}
	command := &cobra.Command{
		Use: "sync PREFIX FOLDER", Short: "Keep a folder of files equal to a prefix",
		Args: cobra.ExactArgs(2), ValidArgsFunction: reach.completeKeyThenFile,
		RunE: func(command *cobra.Command, args []string) error {
			s.prefix, s.where = prefixOf(args), args[1]
			s.stdout, s.stderr = command.OutOrStdout(), command.ErrOrStderr()
			ctx, stop := untilSignal(command.Context())
			defer stop()
			return s.run(ctx)
		},
	}
	command.Flags().BoolVar(&s.once, "once", false, "make the folder equal and end, within --timeout")
	command.Flags().StringVar(&s.signal, "signal", "", "what to send after each change, as `PID:SIGNAL`; a file may hold the PID")
	command.Flags().StringVar(&s.exec, "exec", "", "what to run after each change")
	command.Flags().Var(&s.mode, "mode", "mode of the files; folders can be entered by whom it lets read")
	return command
}

func (s *configSync) run(ctx context.Context) (err error) {
	if s.mode&0o600 != 0o600 {
		return usageError(fmt.Errorf("--mode %s: whoever owns the files must be able to read and write them, as with 0600", &s.mode))
	}
	tell, err := s.teller()
	if err != nil {
		return usageError(err)
	}
	client, err := s.reach.dial(s.reach.address)
	if err != nil {
		return err
	}
	defer client.Close()
	folder, err := openFolder(s.where, s.prefix, fs.FileMode(s.mode))
	if err != nil {
		return usageError(err)
	}
	defer func() { err = errors.Join(err, folder.close()) }()
	if s.once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.reach.timeout)
		defer cancel()
	}
	return s.keep(ctx, client.Config(), folder, tell)
}

var (
	errNoState = errors.New("ended before there was a complete state, see --timeout")
	errEnough  = errors.New("the one state is written")
)

// keep runs the watch, the writer and the command beside each other.
func (s *configSync) keep(ctx context.Context, config *sidekeeper.Config, folder *folder, tell *teller) error {
	following := &follower{
		watch: func(ctx context.Context) iter.Seq2[sidekeeper.ConfigEvent, error] {
			return config.WatchPrefix(ctx, s.prefix)
		},
		say: s.reach.sayTrouble(s.stderr),
	}
	following.tell = func(events []configEvent) error {
		s.see(following, events)
		return nil
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return following.run(running) })
	group.Go(func() error { return s.write(running, config, folder, tell) })
	if tell.command != nil && !s.once {
		group.Go(func() error { return tell.command.run(running) })
	}
	switch err := group.Wait(); {
	case errors.Is(err, errEnough):
		return nil
	case err == nil && s.once:
		return exitError{exitUnreachable, errNoState}
	default:
		return err
	}
}

// see takes over what the follower knows.
func (s *configSync) see(f *follower, events []configEvent) {
	for _, event := range events {
		switch event.name {
		case eventStale:
			sayTo(s.stderr)("no contact: the files stay as they are")
		case eventFresh:
			sayTo(s.stderr)("contact is back")
		}
	}
	s.mu.Lock()
	s.view, s.old = maps.Clone(f.view), f.stale
	s.mu.Unlock()
	s.wake()
}

func (s *configSync) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// current says whether the view is complete and up to date.
func (s *configSync) current() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.old
}

// seen is what the watch has told.
func (s *configSync) seen() (listed []sidekeeper.Entry) {
	s.mu.Lock()
	view := s.view
	s.mu.Unlock()
	for _, key := range slices.SortedFunc(maps.Keys(view), compareKeys) {
		listed = append(listed, *view[key])
	}
	return listed
}

// write makes the folder equal to what was seen, again and again until ctx ends. What fails is tried again.
func (s *configSync) write(ctx context.Context, config *sidekeeper.Config, folder *folder, tell *teller) error {
	pause := shortestPause
	for {
		select {
		case <-s.news:
		case <-ctx.Done():
			return nil
		}
		if !s.current() {
			continue // the watch will say when
		}
		written, err := s.writeOnce(ctx, config, folder, tell)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it failed since it was ended
		case written && s.once:
			return s.endOnce(ctx, tell)
		case written:
			pause = shortestPause
			continue
		case s.final(err):
			return err
		case err != nil:
			sayTo(s.stderr)("%s; trying again", explain(err, s.reach.last))
			pause = min(2*pause, longestPause)
		}
		select {
		case <-time.After(pause):
			s.wake()
		case <-ctx.Done():
		}
	}
}

// final says whether an error is the end: with --once that of the folder is.
func (s *configSync) final(err error) bool {
	return lasting(err) || s.once && err != nil && !errors.As(err, new(*sidekeeper.Error))
}

// writeOnce writes what was stored at one moment since the watch has last told something. What has changed since that
// moment is on its way through the watch.
func (s *configSync) writeOnce(
	ctx context.Context, config *sidekeeper.Config, folder *folder, tell *teller,
) (written bool, err error) {
	stored, err := atOneMoment(ctx, config, s.prefix, s.seen())
	switch {
	case errors.Is(err, errRestless):
		return false, nil
	case err != nil || !s.current():
		return false, err
	}
	changed, err := folder.replace(entriesBelow(s.prefix, stored))
	tell.due = tell.due || changed
	if err != nil {
		return false, fmt.Errorf("folder %s: %w", s.where, err)
	}
	if tell.due && !s.once {
		tell.due = false
		tell.tell()
	}
	return true, nil
}

// endOnce tells of the one state.
func (s *configSync) endOnce(ctx context.Context, tell *teller) error {
	switch {
	case tell.signal != nil:
		if err := tell.signal.send(); err != nil {
			return err
		}
	case tell.command != nil:
		if code, err := tell.command.once(ctx); err != nil || code != 0 {
			return errors.Join(err, exitError{code: code})
		}
	}
	return errEnough
}
