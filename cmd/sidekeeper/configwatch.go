package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
)

// A configWatch tells of changes until it is stopped.
type configWatch struct {
	reach *reach
	names []string
	exact bool // the names are keys; else there is one prefix at most
	exec  string

	mu      sync.Mutex
	state   []*sidekeeper.Entry // for the command
	changed map[string]string   // since the command last began: what has become of which key
}

func newConfigWatchCommand(reach *reach) *cobra.Command {
	w := &configWatch{reach: reach, changed: map[string]string{}}
	command := &cobra.Command{
		Use:   "watch [PREFIX] | watch --exact KEY...",
		Short: "Tell what is stored and then each change, or run a command for it",
		Args:  w.takeArguments, ValidArgsFunction: reach.completeKey,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(command.Context())
			defer stop()
			return w.run(ctx, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	command.Flags().BoolVar(&w.exact, "exact", false, "only these keys, not what lies below them")
	command.Flags().StringVar(&w.exec, "exec", "", "what to run instead of telling")
	return command
}

func (w *configWatch) takeArguments(command *cobra.Command, args []string) error {
	switch {
	case command.Flags().Changed("exec") && w.exec == "":
		return errors.New("--exec: say what to run")
	case w.exact && len(args) == 0:
		return errors.New("--exact: say which keys")
	case w.exact && len(args) > mostWatchedExact:
		return fmt.Errorf("at most %d keys", mostWatchedExact)
	case !w.exact && len(args) > 1:
		return errors.New("say one prefix, or several keys with --exact")
	}
	w.names = args
	return nil
}

func (w *configWatch) run(ctx context.Context, stdout, stderr io.Writer) error {
	client, err := w.reach.dial(w.reach.address)
	if err != nil {
		return err
	}
	defer client.Close()
	following := &follower{
		watch: func(ctx context.Context) iter.Seq2[sidekeeper.ConfigEvent, error] {
			return w.watch(ctx, client.Config())
		},
		say:      w.reach.sayTrouble(stderr),
		patience: w.reach.timeout,
	}
	if w.exec == "" {
		following.tell = func(events []configEvent) error { return w.reach.showEvents(stdout, events) }
		return following.run(ctx)
	}
	command := newRerunner(w.exec, stdout, stderr, w.nextRun)
	following.tell = func(events []configEvent) error {
		if w.note(following.view, events) {
			command.again()
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return following.run(ctx) })
	group.Go(func() error { return command.run(ctx) })
	return group.Wait()
}

func (w *configWatch) watch(ctx context.Context, config *sidekeeper.Config) iter.Seq2[sidekeeper.ConfigEvent, error] {
	if w.exact {
		return config.Watch(ctx, w.names[0], w.names[1:]...)
	}
	return config.WatchPrefix(ctx, prefixOf(w.names))
}

// sayTrouble tells people about errors that are no end.
func (r *reach) sayTrouble(stderr io.Writer) func(error) {
	say := sayTo(stderr)
	return func(err error) { say("%s; trying again", explain(err, r.last)) }
}

// note takes down what the next run of the command is about, and says whether there is anything.
func (w *configWatch) note(view map[string]*sidekeeper.Entry, events []configEvent) (news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range events {
		switch event.name {
		case eventPut, eventDeleted:
			w.changed[event.key] = event.name
			news = true
		case eventSynced:
			news = true
		}
	}
	if news {
		w.state = w.state[:0:0]
		for _, key := range slices.SortedFunc(maps.Keys(view), compareKeys) {
			w.state = append(w.state, view[key])
		}
	}
	return news
}

func (w *configWatch) nextRun() commandRun {
	w.mu.Lock()
	changed, state := w.changed, &configv1.ListResponse{}
	w.changed = map[string]string{}
	for _, entry := range w.state {
		state.Entries = append(state.Entries, wireEntry(*entry))
	}
	w.mu.Unlock()

	next := commandRun{environment: []string{"SIDEKEEPER_CONFIG_CHANGES=" + strconv.Itoa(len(changed))}}
	key, event := "", ""
	if len(changed) == 1 {
		for key, event = range changed {
		}
	}
	next.environment = append(next.environment, "SIDEKEEPER_CONFIG_KEY="+key, "SIDEKEEPER_CONFIG_EVENT="+event)
	var stdin bytes.Buffer
	_ = writeMessage(&stdin, state) // its text is UTF-8, and memory takes it
	next.stdin = stdin.Bytes()
	return next
}

// showEvents writes a line for each event.
func (r *reach) showEvents(to io.Writer, events []configEvent) error {
	for _, event := range events {
		if r.json() {
			if err := writeJSON(to, event); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintln(to, event.words()); err != nil {
			return err
		}
	}
	return nil
}

func (e configEvent) words() string {
	words := e.name
	if e.key != "" {
		words = fmt.Sprintf("%-7s  %s", e.name, printable(e.key))
	}
	if e.entry != nil {
		words += fmt.Sprintf("  version %d  %s", e.entry.Version, glance(e.entry.Value))
	}
	if e.coalesced {
		words += "  (coalesced)"
	}
	if e.recreated {
		words += "  (recreated)"
	}
	return words
}

// MarshalJSON makes an object of what there is, with the entry as the API shows it.
func (e configEvent) MarshalJSON() ([]byte, error) {
	shown := struct {
		Event     string          `json:"event"`
		Key       string          `json:"key,omitempty"`
		Entry     json.RawMessage `json:"entry,omitempty"`
		Coalesced bool            `json:"coalesced,omitempty"`
		Recreated bool            `json:"recreated,omitempty"`
	}{Event: e.name, Key: e.key, Coalesced: e.coalesced, Recreated: e.recreated}
	if e.entry != nil {
		entry, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(wireEntry(*e.entry))
		if err != nil {
			return nil, err
		}
		shown.Entry = entry
	}
	return json.Marshal(shown)
}
