package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/doctor"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// census lists the sessions of the ensemble, or who watches what. Which servers did not answer goes to errors.
func (r *reach) census(ctx context.Context, out, errors io.Writer, settings *settings, watches bool) error {
	r.last = "the ensemble"
	ensemble, err := settings.openEnsemble(zap.NewNop(), server.NewMetrics(), traces{}, nil)
	if err != nil {
		return exit.UsageError(err)
	}
	defer ensemble.Close()
	asked := settings.forDoctor(doctorFlags{})
	var unheard []string
	if watches {
		var all []doctor.Watches
		if all, unheard, err = doctor.WatchesOf(ctx, ensemble, asked); err == nil {
			err = r.showWatches(out, all)
		}
	} else {
		var all []doctor.Session
		if all, unheard, err = doctor.Sessions(ctx, ensemble, asked); err == nil {
			err = r.showSessions(out, all)
		}
	}
	if err != nil {
		return exit.With(exit.Unreachable, err)
	}
	for _, line := range unheard {
		fmt.Fprintln(errors, "sidekeeper: "+line)
	}
	return nil
}

func (r *reach) showSessions(out io.Writer, all []doctor.Session) error {
	if r.json() {
		return show.JSON(out, append([]doctor.Session{}, all...))
	}
	return show.Table(out, "SESSION SERVER CLIENT TIMEOUT OWNERS NODES", each(all, func(s doctor.Session) []string {
		timeout := "-"
		if s.TimeoutMillis > 0 {
			timeout = (time.Duration(s.TimeoutMillis) * time.Millisecond).String()
		}
		return []string{s.ID, show.Printable(s.Server), show.Printable(s.Client), timeout, some(s.Owners), some(s.Nodes)}
	}))
}

func (r *reach) showWatches(out io.Writer, all []doctor.Watches) error {
	if r.json() {
		return show.JSON(out, append([]doctor.Watches{}, all...))
	}
	return show.Table(out, "PATH SESSIONS CLIENTS", each(all, func(w doctor.Watches) []string {
		clients := each(w.Sessions, func(s doctor.Session) string { return s.Client })
		return []string{show.Printable(w.Path), strconv.Itoa(len(w.Sessions)), some(clients)}
	}))
}

// some shows the first few words of many.
func some(words []string) string {
	const few = 3
	if more := len(words) - few; more > 1 {
		return show.Printable(strings.Join(words[:few], " ")) + fmt.Sprintf(" and %d more", more)
	}
	return show.Printable(strings.Join(words, " "))
}
