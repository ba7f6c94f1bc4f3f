package main

import (
	"errors"

	"github.com/sidekeeper/sidekeeper/internal/show"
)

// A teller tells a program that its files have changed: by a signal, by a command, or not at all.
type teller struct {
	signal  *signaller
	command *rerunner
	say     func(string, ...any)
	due     bool // there is something to tell: at first that there are files
}

func (s *configSync) teller() (*teller, error) {
	tell := &teller{due: true, say: show.Notes(s.stderr)}
	switch {
	case s.signal != "" && s.exec != "":
		return nil, errors.New("--signal or --exec: one is enough")
	case s.signal != "":
		signal, err := parseSignal(s.signal)
		if err != nil {
			return nil, err
		}
		tell.signal = &signal
	case s.exec != "":
		next := commandRun{environment: []string{"SIDEKEEPER_CONFIG_FOLDER=" + s.where, "SIDEKEEPER_CONFIG_PREFIX=" + s.prefix}}
		tell.command = newRerunner(s.exec, s.stdout, s.stderr, func() commandRun { return next })
	}
	return tell, nil
}

func (t *teller) tell() {
	switch {
	case t.command != nil:
		t.command.again()
	case t.signal != nil:
		if err := t.signal.send(); err != nil {
			t.say("%v", err)
		}
	}
}
