package configsync

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// A Watch tells what is stored and then each change, or runs a command for it, until it is stopped.
type Watch struct {
	Sidecar

	Keys   []string // these alone; or nil
	Prefix string   // all at and below it, if there are no Keys
	Exec   string   // command to run instead of printing
	JSON   bool

	mu      sync.Mutex
	state   []sidekeeper.Entry // for the command
	changed map[string]string  // since the command last began: what has become of which key
}

// MaxKeys is how many keys one Watch may have.
const MaxKeys = 1000

// Run watches until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	w.changed = map[string]string{}
	following := &follower{
		watch: func(ctx context.Context) iter.Seq2[sidekeeper.ConfigEvent, error] {
			return w.watch(ctx, w.Client.Config())
		},
		say:     w.sayTrouble,
		timeout: w.Timeout,
	}
	if w.Exec == "" {
		following.tell = func(events []event) error { return w.show(events) }
		return following.run(ctx)
	}
	command := w.newRerunner(w.Exec, w.nextRun)
	following.tell = func(events []event) error {
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

func (w *Watch) watch(ctx context.Context, config *sidekeeper.Config) iter.Seq2[sidekeeper.ConfigEvent, error] {
	if len(w.Keys) > 0 {
		return config.Watch(ctx, w.Keys[0], w.Keys[1:]...)
	}
	return config.WatchPrefix(ctx, w.Prefix)
}

// note takes down what the next run of the command is about, and says whether there is anything.
func (w *Watch) note(view map[string]*sidekeeper.Entry, events []event) (news bool) {
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
		w.state = inOrder(view)
	}
	return news
}

func (w *Watch) nextRun() run {
	w.mu.Lock()
	changed, state := w.changed, &configv1.ListResponse{}
	w.changed = map[string]string{}
	for _, entry := range w.state {
		state.Entries = append(state.Entries, Wire(entry))
	}
	w.mu.Unlock()

	next := run{environment: []string{"SIDEKEEPER_CONFIG_CHANGES=" + strconv.Itoa(len(changed))}}
	key, event := "", ""
	if len(changed) == 1 {
		for key, event = range changed {
		}
	}
	next.environment = append(next.environment, "SIDEKEEPER_CONFIG_KEY="+key, "SIDEKEEPER_CONFIG_EVENT="+event)
	var stdin bytes.Buffer
	_ = show.Message(&stdin, state) // its text is UTF-8, and memory takes it
	next.stdin = stdin.Bytes()
	return next
}

// show writes a line for each event.
func (w *Watch) show(events []event) error {
	for _, event := range events {
		if w.JSON {
			if err := show.JSON(w.Stdout, event); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintln(w.Stdout, event.words()); err != nil {
			return err
		}
	}
	return nil
}

func (e event) words() string {
	words := e.name
	if e.key != "" {
		words = fmt.Sprintf("%-7s  %s", e.name, show.Printable(e.key))
	}
	if e.entry != nil {
		words += fmt.Sprintf("  version %d  %s", e.entry.Version, Glance(e.entry.Value))
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
func (e event) MarshalJSON() ([]byte, error) {
	shown := struct {
		Event     string          `json:"event"`
		Key       string          `json:"key,omitempty"`
		Entry     json.RawMessage `json:"entry,omitempty"`
		Coalesced bool            `json:"coalesced,omitempty"`
		Recreated bool            `json:"recreated,omitempty"`
	}{Event: e.name, Key: e.key, Coalesced: e.coalesced, Recreated: e.recreated}
	if e.entry != nil {
		entry, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(Wire(*e.entry))
		if err != nil {
			return nil, err
		}
		shown.Entry = entry
	}
	return json.Marshal(shown)
}
