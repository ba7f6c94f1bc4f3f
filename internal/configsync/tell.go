package configsync

import (
	"errors"
	"fmt"

	"github.com/sidekeeper/sidekeeper/internal/show"
)

// A notifier tells a program that its files have changed: by a signal, by a command, or not at all.
type notifier struct {
	signal  *signalTarget
	command *rerunner
	say     func(string, ...any)
	due     bool // there is something to tell: at first that there are files
}

func (s *Sync) notifier() (*notifier, error) {
	tell := &notifier{due: true, say: show.Notes(s.Notes)}
	switch {
	case s.Signal != "" && s.Exec != "":
		return nil, errors.New("--signal and --exec exclude each other")
	case s.Retry < 0:
		return nil, fmt.Errorf("--retry %v: expected a time, such as 10s", s.Retry)
	case s.Retry > 0 && (s.Exec == "" || s.Once):
		return nil, errors.New("--retry: only with --exec, and not with --once")
	case s.Signal != "":
		signal, err := parseSignal(s.Signal)
		if err != nil {
			return nil, err
		}
		tell.signal = &signal
	case s.Exec != "":
		next := run{environment: []string{"SIDEKEEPER_CONFIG_FOLDER=" + s.Folder, "SIDEKEEPER_CONFIG_PREFIX=" + s.Prefix}}
		tell.command = s.newRerunner(s.Exec, func() run { return next })
		tell.command.retry = s.Retry
	}
	return tell, nil
}

func (t *notifier) tell() {
	switch {
	case t.command != nil:
		t.command.again()
	case t.signal != nil:
		if err := t.signal.send(); err != nil {
			t.say("%v", err)
		}
	}
}
