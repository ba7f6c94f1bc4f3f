package endtoend

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

var (
	churned     = flag.Int("keys", 300, "how many keys change while they are watched")
	keyWatchers = flag.Int("key-watchers", 200, "how many callers watch one key")
)

// keysOf is the configuration as a caller of a sidecar of its own reaches it.
func keysOf(t *testing.T, s *sidecar) *sidekeeperclient.Config {
	t.Helper()
	return s.client(t).Config()
}

// sentinels are the errors that the tests expect, by the word they write for them.
var sentinels = []struct {
	word string
	err  error
}{
	{"no key", sidekeeperclient.ErrKeyNotFound},
	{"refused", sidekeeperclient.ErrPreconditionFailed},
	{"crowded", sidekeeperclient.ErrKeyHasChildren},
	{"operators only", sidekeeperclient.ErrOperatorOnly},
	{"invalid", sidekeeperclient.ErrInvalidField},
}

func inWords(entry sidekeeperclient.Entry, err error) string {
	for _, known := range sentinels {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(fmt.Sprintf("%s@v%d", entry.Value, entry.Version), "@")
}

func TestEveryCallOfTheConfigurationOnARealEnsemble(t *testing.T) {
	s := quickSidecars(t, 1)[0]
	config, ctx := keysOf(t, s), t.Context()
	operators, err := sidekeeperclient.Dial(s.operatorAddress())
	must(t, err)
	defer operators.Close()
	put := func(key, value string, when ...sidekeeperclient.Precondition) string {
		return inWords(config.Put(ctx, key, []byte(value), when...))
	}
	remove := func(key string, when ...sidekeeperclient.Precondition) string {
		return inWords(sidekeeperclient.Entry{}, config.Delete(ctx, key, when...))
	}
	commit := func(fill func(*sidekeeperclient.Commit)) string {
		var all sidekeeperclient.Commit
		fill(&all)
		_, err := config.Commit(ctx, &all)
		failed := &sidekeeperclient.Error{}
		if errors.As(err, &failed) {
			return inWords(sidekeeperclient.Entry{}, err) + " #" + failed.Metadata["operation"]
		}
		return inWords(sidekeeperclient.Entry{}, err)
	}
	large := strings.Repeat("x", 1_000_000)
	for _, step := range []struct{ what, got, want string }{
		{"nothing there", inWords(config.Get(ctx, "rpc/a")), "no key"},
		{"put", put("rpc/a/b", "1"), "v1"},
		{"get", inWords(config.Get(ctx, "rpc/a/b")), "1@v1"},
		{"put where a container is", put("rpc/a", "2", sidekeeperclient.IfMissing()), "v1"},
		{"get latest", inWords(config.GetLinearizable(ctx, "rpc/a")), "2@v1"},
		{"put of another version", put("rpc/a", "3", sidekeeperclient.IfVersion(2)), "refused"},
		{"put of this version", put("rpc/a", "3", sidekeeperclient.IfVersion(1)), "v2"},
		{"put of nothing", put("rpc/none", "3", sidekeeperclient.IfExists()), "refused"},
		{"empty value", put("rpc/empty", ""), "v1"},
		{"get empty", inWords(config.Get(ctx, "rpc/empty")), "v1"},
		{"delete what is above", remove("rpc/a"), "crowded"},
		{"commit", commit(func(c *sidekeeperclient.Commit) {
			c.Put("rpc/c", []byte("4"))
			c.Delete("rpc/a/b", sidekeeperclient.IfVersion(1))
			c.Check("rpc/d", sidekeeperclient.IfMissing())
		}), "v0"},
		{"commit that fails", commit(func(c *sidekeeperclient.Commit) {
			c.Put("rpc/e", []byte("5"))
			c.Check("rpc/d", sidekeeperclient.IfExists())
		}), "refused #1"},
		{"what was not written", inWords(config.Get(ctx, "rpc/e")), "no key"},
		{"delete", remove("rpc/a", sidekeeperclient.IfExists()), "v0"},
		{"delete again", remove("rpc/a"), "no key"},
		{"the largest value", put("rpc/large", large), "v1"},
		{"the largest value, where a container is", put("rpc/large/below/x", "1") + put("rpc/large/below", large), "v1v1"},
		{"a larger value", put("rpc/larger", large+"x"), "invalid"},
	} {
		if step.got != step.want {
			t.Errorf("%s: %.80s, want %s", step.what, step.got, step.want)
		}
	}
	var keys []string
	for entry, err := range config.List(ctx, "rpc") {
		must(t, err)
		keys = append(keys, fmt.Sprint(entry.Key, " ", len(entry.Value)))
	}
	if got := strings.Join(keys, ", "); got != "rpc/c 1, rpc/empty 0, rpc/large 1000000, rpc/large/below 1000000, rpc/large/below/x 1" {
		t.Error(got)
	}
	if _, err := config.DeleteAll(ctx, "rpc"); inWords(sidekeeperclient.Entry{}, err) != "operators only" {
		t.Error(err)
	}
	if deleted, err := operators.Config().DeleteAll(ctx, "rpc"); deleted != 5 || err != nil {
		t.Error(deleted, err)
	}
}

// The ensemble removes containers; what was made a key in one's place stays.
func TestAKeyOutlivesTheContainerItWasPutOn(t *testing.T) {
	config := keysOf(t, quickSidecars(t, 1)[0])
	direct := connect(t, shared.Ensemble)
	for _, key := range []string{"kept/a/b", "kept/a", "gone/a/b"} {
		_, err := config.Put(t.Context(), key, []byte("1"))
		must(t, err)
	}
	for _, key := range []string{"kept/a/b", "gone/a/b"} {
		must(t, config.Delete(t.Context(), key))
	}
	for there := true; there; {
		var err error
		there, _, err = direct.Exists("/sidekeeper/config/gone")
		must(t, err)
		await(t, "a moment", patient, after(100*time.Millisecond))
	}
	if got := inWords(config.GetLinearizable(t.Context(), "kept/a")); got != "1@v1" {
		t.Error(got)
	}
	must(t, config.Delete(t.Context(), "kept/a"))
}

// A follower of keys keeps what a watch has told it.
type follower struct {
	mu      sync.Mutex
	values  map[string]string
	version map[string]int32
	changed *record[string] // the keys told of
	fault   string          // of the watch's grammar
}

// follow watches until the test ends.
func follow(t *testing.T, config *sidekeeperclient.Config, prefix string) *follower {
	t.Helper()
	f := &follower{values: map[string]string{}, version: map[string]int32{}, changed: newRecord[string]()}
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			f.take(config.WatchPrefix(ctx, prefix))
		}
	})
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return f
}

// take takes in one stream. A watch that begins anew begins with everything.
func (f *follower) take(events func(yield func(sidekeeperclient.ConfigEvent, error) bool)) {
	synced := false
	f.mu.Lock()
	f.values, f.version = map[string]string{}, map[string]int32{}
	f.mu.Unlock()
	for event, err := range events {
		if err != nil {
			return
		}
		f.mu.Lock()
		if synced != (event.Kind != sidekeeperclient.ConfigState && event.Kind != sidekeeperclient.ConfigSynced) {
			f.fault = fmt.Sprintf("event %d, synced %t", event.Kind, synced)
		}
		synced = synced || event.Kind == sidekeeperclient.ConfigSynced
		for _, change := range event.Changes {
			f.apply(change)
		}
		f.mu.Unlock()
		for _, change := range event.Changes {
			f.changed.add(change.Entry.Key + "=" + string(change.Entry.Value))
		}
	}
}

func (f *follower) apply(change sidekeeperclient.ConfigChange) {
	key := change.Entry.Key
	before, known := f.version[key]
	switch {
	case change.Deleted && !known:
		f.fault = key + " was deleted without having been told of"
	case change.Deleted:
		delete(f.values, key)
		delete(f.version, key)
		return
	case change.Recreated && !known:
		f.fault = key + " was made anew without having been told of"
	case known && !change.Recreated && change.Entry.Version <= before:
		f.fault = fmt.Sprintf("%s has version %d after %d", key, change.Entry.Version, before)
	case known && !change.Recreated && !change.Coalesced && change.Entry.Version != before+1:
		f.fault = fmt.Sprintf("%s has version %d after %d and nothing in between", key, change.Entry.Version, before)
	}
	f.values[key], f.version[key] = string(change.Entry.Value), change.Entry.Version
}

// state is what the follower knows, in the order of keys.
func (f *follower) state() (string, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var words []string
	for key, value := range f.values {
		words = append(words, fmt.Sprintf("%s=%s@v%d", key, value, f.version[key]))
	}
	slices.Sort(words)
	return strings.Join(words, " "), f.fault
}

func TestAThousandWatchersOfOneKeyAllGetTheLastValue(t *testing.T) {
	s := quickSidecars(t, 2)
	var followers []*follower
	for range 4 {
		config := keysOf(t, s[0])
		for range *keyWatchers / 4 {
			followers = append(followers, follow(t, config, "crowd/key"))
		}
	}
	writer := keysOf(t, s[1])
	for i := range 20 {
		_, err := writer.Put(t.Context(), "crowd/key", fmt.Append(nil, i))
		must(t, err)
	}
	began := now()
	_, err := writer.Put(t.Context(), "crowd/key", []byte("last"))
	must(t, err)
	for _, f := range followers {
		f.changed.await(t, "the last value", patient, func(told string) bool { return told == "crowd/key=last" })
	}
	t.Logf("%d watchers had the last value %v after it was put", len(followers), now().since(began))
	for _, f := range followers {
		if state, fault := f.state(); state != "crowd/key=last@v21" || fault != "" {
			t.Errorf("%s %s", state, fault)
		}
	}
}

// Keys change through two sidecars while links are cut and leaders killed; whoever watches ends with exactly what is stored.
func TestWatchersEndWithWhatIsStored(t *testing.T) {
	e := ensembleOf(t, quickTick)
	s := quickSidecars(t, 3)
	var followers []*follower
	for i := range 6 {
		followers = append(followers, follow(t, keysOf(t, s[i%3]), "churn"))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	group, _ := errgroup.WithContext(t.Context())
	for i := range 8 {
		config := keysOf(t, s[i%3])
		group.Go(func() error { return churn(ctx, config, i, 8) })
	}
	for round := range *rounds {
		await(t, "some changes", patient, after(500*time.Millisecond))
		shake(t, e, round)
		repair(t, e)
	}
	stop()
	must(t, group.Wait())
	last := keysOf(t, s[0])
	must(t, retry(t, func() error { _, err := last.Put(t.Context(), "churn/zz-last", []byte("x")); return err }))
	stored := listed(t, last, "churn")
	for i, f := range followers {
		f.changed.await(t, "the last change", patient, func(told string) bool { return strings.HasPrefix(told, "churn/zz-last=") })
		awaitState(t, f, stored)
		if _, fault := f.state(); fault != "" {
			t.Errorf("follower %d: %s", i, fault)
		}
	}
	t.Logf("%d keys of %d are left; %d changes were told", strings.Count(stored, "="), *churned, len(followers[0].changed.all()))
}

// awaitState waits until a follower knows exactly this.
func awaitState(t *testing.T, f *follower, want string) {
	t.Helper()
	for began := now(); ; {
		state, _ := f.state()
		if state == want {
			return
		}
		if now().since(began) > patient {
			t.Fatalf("a watcher ends with\n%s\nstored is\n%s", state, want)
		}
		await(t, "a moment", patient, after(20*time.Millisecond))
	}
}

// churn writes and deletes keys in turn until ctx ends, each worker its own. It goes on whatever a call answers.
func churn(ctx context.Context, config *sidekeeperclient.Config, worker, workers int) error {
	for turn := 0; ctx.Err() == nil; turn++ {
		for i := worker; i < *churned && ctx.Err() == nil; i += workers {
			key := fmt.Sprintf("churn/k%d", i)
			if i%5 == 0 {
				key += "/below"
			}
			var err error
			if (i/workers+turn)%4 == 3 {
				err = config.Delete(ctx, key)
			} else {
				_, err = config.Put(ctx, key, fmt.Append(nil, turn))
			}
			if err != nil && errors.Is(err, sidekeeperclient.ErrInternal) {
				return err
			}
		}
	}
	return nil
}

// shake does one of the things that happen to an ensemble.
func shake(t *testing.T, e *ensemble.Ensemble, which int) {
	t.Helper()
	leader, err := e.AwaitQuorum(t.Context())
	must(t, err)
	switch which % 3 {
	case 0:
		for _, server := range e.Servers() {
			server.ClientLink().Reset()
		}
	case 1:
		leader.Kill()
	case 2:
		leader.Freeze()
	}
	await(t, "what comes of it", patient, after(time.Second))
}

// retry repeats a call that may be repeated until it is done.
func retry(t *testing.T, call func() error) error {
	t.Helper()
	for began := now(); ; {
		err := call()
		if err == nil || now().since(began) > patient {
			return err
		}
		await(t, "a moment", patient, after(50*time.Millisecond))
	}
}

// listed is what is stored.
func listed(t *testing.T, config *sidekeeperclient.Config, prefix string) string {
	t.Helper()
	must(t, retry(t, func() error { _, err := config.GetLinearizable(t.Context(), prefix+"/zz-last"); return err }))
	var words []string
	for entry, err := range config.List(t.Context(), prefix) {
		must(t, err)
		words = append(words, fmt.Sprintf("%s=%s@v%d", entry.Key, entry.Value, entry.Version))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}
