// Package configsync keeps files equal to configuration, and configuration to files, and runs commands when it changes.
package configsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// A Sync keeps a folder equal to a prefix.
type Sync struct {
	Sidecar

	Prefix, Folder string
	Mode           fs.FileMode   // of the files
	Once           bool          // make the folder equal and end, within Timeout
	Signal, Exec   string        // what to do after each change
	Retry          time.Duration // after which a command that failed runs again; 0 with the next change

	news chan struct{}
	mu   sync.Mutex
	view map[string]*sidekeeper.Entry // what the watch has told
	old  bool                         // the view may be out of date, or is not complete yet
}

// Run keeps the folder until ctx ends.
func (s *Sync) Run(ctx context.Context) (err error) {
	s.old, s.news = true, make(chan struct{}, 1)
	if s.Mode&0o600 != 0o600 {
		return exit.UsageError(fmt.Errorf("--mode %04o: the owner must be able to read and write the files, as with 0600", s.Mode))
	}
	tell, err := s.notifier()
	if err != nil {
		return exit.UsageError(err)
	}
	folder, err := openFolder(s.Folder, s.Prefix, s.Mode)
	if err != nil {
		return exit.UsageError(err)
	}
	defer func() { err = errors.Join(err, folder.close()) }()
	if s.Once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	return s.keep(ctx, s.Client.Config(), folder, tell)
}

var (
	errNoState = errors.New("ended before there was a complete state, see --timeout")
	errEnough  = errors.New("the one state is written")
)

// keep runs the watch, the writer and the command beside each other.
func (s *Sync) keep(ctx context.Context, config *sidekeeper.Config, folder *folder, tell *notifier) error {
	following := &follower{
		watch: func(ctx context.Context) iter.Seq2[sidekeeper.ConfigEvent, error] {
			return config.WatchPrefix(ctx, s.Prefix)
		},
		say: s.sayTrouble,
	}
	following.tell = func(events []event) error {
		s.see(following, events)
		return nil
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return following.run(running) })
	group.Go(func() error { return s.write(running, config, folder, tell) })
	if tell.command != nil && !s.Once {
		group.Go(func() error { return tell.command.run(running) })
	}
	switch err := group.Wait(); {
	case errors.Is(err, errEnough):
		return nil
	case err == nil && s.Once:
		return exit.With(exit.Unreachable, errNoState)
	default:
		return err
	}
}

// see takes over what the follower knows.
func (s *Sync) see(f *follower, events []event) {
	for _, event := range events {
		switch event.name {
		case eventStale:
			show.Notes(s.Notes)("no contact: the files stay as they are")
		case eventFresh:
			show.Notes(s.Notes)("contact is back")
		}
	}
	s.mu.Lock()
	s.view, s.old = maps.Clone(f.view), f.stale
	s.mu.Unlock()
	s.wake()
}

func (s *Sync) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// current says whether the view is complete and up to date.
func (s *Sync) current() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.old
}

// seen is what the watch has told.
func (s *Sync) seen() []sidekeeper.Entry {
	s.mu.Lock()
	view := s.view
	s.mu.Unlock()
	return inOrder(view)
}

// write makes the folder equal to what was seen, again and again until ctx ends. What fails is tried again.
func (s *Sync) write(ctx context.Context, config *sidekeeper.Config, folder *folder, tell *notifier) error {
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
		case written && s.Once:
			return s.endOnce(ctx, tell)
		case written:
			pause = shortestPause
			continue
		case s.final(err):
			return err
		case err != nil:
			s.sayTrouble(err)
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
func (s *Sync) final(err error) bool {
	return lasting(err) || s.Once && err != nil && !errors.As(err, new(*sidekeeper.Error))
}

// writeOnce writes what was stored at one moment since the watch has last told something. What has changed since that
// moment is on its way through the watch.
func (s *Sync) writeOnce(
	ctx context.Context, config *sidekeeper.Config, folder *folder, tell *notifier,
) (written bool, err error) {
	stored, err := atOneMoment(ctx, config, s.Prefix, s.seen())
	switch {
	case errors.Is(err, errRestless):
		return false, nil
	case err != nil || !s.current():
		return false, err
	}
	changed, err := folder.replace(entriesBelow(s.Prefix, stored))
	tell.due = tell.due || changed
	if err != nil {
		return false, fmt.Errorf("folder %s: %w", s.Folder, err)
	}
	if tell.due && !s.Once {
		tell.due = false
		tell.tell()
	}
	return true, nil
}

// endOnce tells of the one state.
func (s *Sync) endOnce(ctx context.Context, tell *notifier) error {
	switch {
	case tell.signal != nil:
		if err := tell.signal.send(); err != nil {
			return err
		}
	case tell.command != nil:
		if code, err := tell.command.once(ctx); err != nil || code != 0 {
			return errors.Join(err, exit.With(code, nil))
		}
	}
	return errEnough
}
