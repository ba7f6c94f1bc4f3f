package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/judge"
)

// A result is what has become of one round.
type result struct {
	Seed      uint64    `json:"seed"`
	Profile   string    `json:"profile"`
	Timeout   string    `json:"timeout"` // of sessions
	Nemeses   []string  `json:"nemeses"`
	Workloads []string  `json:"workloads"`
	Replay    string    `json:"replay"` // the command that plays it again
	Folder    string    `json:"folder"` // its histories, if they were kept
	Began     time.Time `json:"began"`
	Seconds   float64   `json:"seconds"`

	Operations    int             `json:"operations"`
	Rate          float64         `json:"rate"`    // operations a second before the first fault
	Strikes       int             `json:"strikes"` // how often something was broken
	Grants        int             `json:"grants"`
	Epochs        int             `json:"epochs"`
	Forced        int             `json:"forced"`
	Margins       []time.Duration `json:"margins,omitempty"` // in nanoseconds
	Losses        int             `json:"losses"`
	Needless      int             `json:"needless"`
	Steady        bool            `json:"steady,omitempty"` // no lease was to be lost
	Numbers       int             `json:"numbers"`
	Configuration int             `json:"configuration"`
	Views         int             `json:"views"`
	LostByNaive   int             `json:"lostByNaive"`      // updates, by the store that does not look at tokens
	Guarded       int             `json:"guarded"`          // writes that a lock guarded
	TooLate       int             `json:"tooLate"`          // and of those that none did
	Delayed       int             `json:"delayed"`          // grants after a lost hold with a delay
	Deliveries    int             `json:"deliveries"`       // of items of queues
	Shared        int             `json:"shared"`           // times that a member of a set had an item
	Idle          []time.Duration `json:"idle"`             // for how long such an item had no holder before that
	Borne         int             `json:"borne"`            // times that a caller had a number of a pool
	Rested        int             `json:"rested"`           // of them, those after a caller that had not given it up
	Ticks         int             `json:"ticks"`            // of schedules, that have begun
	Runs          int             `json:"runs"`             // of schedules
	Repeated      int             `json:"repeated"`         // attempts at ticks and runs that followed a lost one
	Missed        int             `json:"missed"`           // ticks
	Items         int             `json:"items"`            // that were removed then
	Passed        int             `json:"passed"`           // barriers
	Entries       int             `json:"entries"`          // to double barriers
	Restarts      int             `json:"restarts"`         // of sidecars, that had to cost nothing
	Outlived      judge.Standing  `json:"outlived"`         // what was kept then
	LostThen      judge.Standing  `json:"lostThen"`         // and what was not
	Pauses        []time.Duration `json:"pauses,omitempty"` // in nanoseconds

	Invalid    string            `json:"invalid,omitempty"`
	Unchecked  []string          `json:"unchecked,omitempty"`
	Violations []judge.Violation `json:"violations,omitempty"`
}

// clean says whether there is nothing to look into.
func (r *result) clean() bool {
	return r.Invalid == "" && len(r.Violations) == 0 && (!r.Steady || r.Needless == 0) && r.LostThen.All() == 0
}

// String is one line about the round.
func (r *result) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %d, timeout %s, %s against %s: %.0f s, %d operations (%.0f/s), %d grants, %d forced, %d lost (%d needlessly)",
		r.Profile, r.Seed, r.Timeout, strings.Join(r.Nemeses, "+"), strings.Join(r.Workloads, "+"),
		r.Seconds, r.Operations, r.Rate, r.Grants, r.Forced, r.Losses, r.Needless)
	if r.Restarts > 0 {
		fmt.Fprintf(&text, "; %d timely restarts cost %d holds, %d members and %d places of waiters (outlived by %d, %d and %d)"+
			"; pause after them p50, p99: %s", r.Restarts, r.LostThen.Holds, r.LostThen.Members, r.LostThen.Places,
			r.Outlived.Holds, r.Outlived.Members, r.Outlived.Places, quantiles(r.Pauses))
	}
	if r.Invalid != "" {
		text.WriteString("; INVALID: " + r.Invalid)
	}
	for _, violation := range r.Violations {
		fmt.Fprintf(&text, "\n  VIOLATION %s: %s", violation.Checker, violation.Text)
	}
	return text.String()
}

// A report is all rounds, of this run and of those added to it.
type report struct {
	Rounds []*result `json:"rounds"`
}

// The files of a report.
const (
	reportJSON     = "report.json"
	reportMarkdown = "report.md"
)

// add adds an earlier report.
func (r *report) add(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var earlier report
	if err := json.Unmarshal(text, &earlier); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	r.Rounds = append(r.Rounds, earlier.Rounds...)
	return nil
}

// write writes the report as it is now.
func (r *report) write(directory string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	var page strings.Builder
	r.markdown(&page)
	return errors.Join(
		os.WriteFile(filepath.Join(directory, reportJSON), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(directory, reportMarkdown), []byte(page.String()), 0o644),
	)
}

// mostInvalid is the share of rounds that may be invalid; a few may always be.
const (
	mostInvalid   = 0.05
	alwaysInvalid = 1
)

// code is the exit code for a run that ended with this error.
func (r *report) code(err error) int {
	t := r.totals()
	switch {
	case t.violations > 0:
		return exitViolated
	case err != nil:
		return exitUnable
	case t.invalid > alwaysInvalid && float64(t.invalid) > mostInvalid*float64(t.rounds):
		return exitUnable
	}
	return exitClean
}
