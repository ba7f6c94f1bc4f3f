package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// How often the console looks, while a page is open and otherwise. If a look takes the sidecar long, the pause is some times as long as that.
const (
	soonest   = 2 * time.Second
	unwatched = 10 * time.Second
	patience  = 10
	whole     = 5 * time.Second // what an answer takes at most
)

// What a contact is.
const (
	contactUnknown = ""
	contactGood    = "good"
	contactLost    = "ensemble" // the sidecar answers, the ensemble does not answer it
	contactNone    = "sidecar"  // the sidecar does not answer
)

// A watcher knows what the page begins with: whether something is wrong, what, and since when. It remembers that in memory, and the sidecar
// remembers nothing for it.
type watcher struct {
	options Options
	sooner  chan struct{} // has one if the next look is due now: a page was opened, or the contact is good again

	mu      sync.Mutex
	asked   time.Time // by a page, for the last time
	contact string
	why     string // there is no contact, if the sidecar does not say
	since   time.Time
	changed bool // since the first look
	seen    *look
	failure string // why there is no newer look
	state   *sidecar
	absence string // why nothing is known of the sidecar itself
	past    history
	holders map[string]held // of contended locks
}

// A held says since when a lock is known to have the same holder.
type held struct {
	token int64
	since time.Time
}

// A sidecar is what its admin listener says of it, as far as the page shows that here.
type sidecar struct {
	Version  string          `json:"version"`
	Uptime   float64         `json:"uptime"`
	Draining bool            `json:"draining"`
	Counts   json.RawMessage `json:"counts"`
	Late     int             `json:"late"`
	Latency  json.RawMessage `json:"latency"`
	Losses   struct {
		Leases  map[string]int `json:"leases"`
		Locks   map[string]int `json:"locks"`
		Members map[string]int `json:"members"`
	} `json:"losses"`
}

// closed is the reason for which a caller lost what stood on a lease that it closed itself: no loss that a person should look at.
const closed = "LEASE_CLOSED"

// lost is how much was lost. It leaves out of the counts what is no loss.
func (s *sidecar) lost() (total int) {
	for _, reasons := range []map[string]int{s.Losses.Leases, s.Losses.Locks, s.Losses.Members} {
		delete(reasons, closed)
		for _, count := range reasons {
			total += count
		}
	}
	return total
}

func newWatcher(options Options) *watcher {
	return &watcher{options: options, sooner: make(chan struct{}, 1), past: history{begun: time.Now()}}
}

// watchContact looks again and again, until ctx ends, at what each answer depends on.
func (w *watcher) watchContact(ctx context.Context) {
	again(ctx, w.lookAtContact, func(time.Duration) time.Duration { return soonest }, nil)
}

// watchLocks looks again and again until ctx ends, and as soon as lookSooner says so.
func (w *watcher) watchLocks(ctx context.Context) { again(ctx, w.lookAtLocks, w.pause, w.sooner) }

func (w *watcher) lookSooner() {
	select {
	case w.sooner <- struct{}{}:
	default:
	}
}

func again(ctx context.Context, task func(context.Context), pause func(took time.Duration) time.Duration, sooner <-chan struct{}) {
	for ctx.Err() == nil {
		begun := time.Now()
		task(ctx)
		select {
		case <-time.After(pause(time.Since(begun))):
		case <-sooner:
		case <-ctx.Done():
		}
	}
}

func (w *watcher) pause(took time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.failure != "": // it took as long as the console was patient
		return unwatched
	case time.Since(w.asked) < unwatched:
		return max(soonest, patience*took)
	}
	return max(unwatched, patience*took)
}

func (w *watcher) lookAtContact(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	response, err := healthpb.NewHealthClient(w.options.Connection).
		Check(bounded, &healthpb.HealthCheckRequest{Service: "sidekeeper.readiness"})
	if ctx.Err() != nil {
		return
	}
	contact, why := contactGood, ""
	switch {
	case err != nil:
		contact, why = contactNone, status.Convert(err).Message()
	case response.GetStatus() != healthpb.HealthCheckResponse_SERVING:
		contact = contactLost
	}
	w.noteContact(time.Now(), contact, why)
}

func (w *watcher) noteContact(now time.Time, contact, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.contact {
	case contact:
	case contactUnknown:
		w.since = w.past.begun
	default:
		w.since, w.changed = now, true
		if contact == contactGood { // or what failed before would not be known for a while longer
			w.lookSooner()
		}
	}
	w.contact, w.why = contact, why
	if contact != contactGood {
		w.past.noteAway(now)
	}
}

func (w *watcher) away() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.contact == contactLost
}

func (w *watcher) lookAtLocks(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	var text bytes.Buffer
	state, absence := &sidecar{}, ""
	err := w.options.State(bounded, &text)
	if err == nil {
		err = json.Unmarshal(text.Bytes(), state)
	}
	if err != nil {
		state, absence = nil, err.Error()
	}
	seen, err := lookAt(bounded, lockv1.NewLockServiceClient(w.options.Connection))
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.state, w.absence = state, absence
	if state != nil {
		w.past.noteLosses(now, state.lost())
	}
	w.failure = ""
	if err != nil {
		w.failure = status.Convert(err).Message()
		return
	}
	seen.at, w.seen = now, seen
	w.noteHolders(now)
	w.past.noteWaits(now, seen.Waiting, seen.Longest)
}

// noteHolders notes which holders are new, and says of the others for how long they have been there at least. An age counts from the beginning
// of the wait, so that it does not tell.
func (w *watcher) noteHolders(now time.Time) {
	before := w.holders
	w.holders = map[string]held{}
	for i := range w.seen.Contended {
		lock := &w.seen.Contended[i]
		known := before[lock.Name]
		if lock.Holder == nil {
			continue
		}
		if known.token != lock.token || known.since.IsZero() {
			known = held{lock.token, now}
		}
		w.holders[lock.Name], lock.Held = known, now.Sub(known.since).Seconds()
	}
}

// noteAsked notes that a page asks. If none has for a while, what is known is old.
func (w *watcher) noteAsked(now time.Time) {
	if now.Sub(w.asked) > unwatched {
		w.lookSooner()
	}
	w.asked = now
}

// mostBegun is how many circles, and how many contended locks, the page begins with.
const mostBegun = 10

// An overview is what the page begins with. Ages are in seconds.
type overview struct {
	Watched float64  `json:"watched"` // for how long the console has looked
	Contact string   `json:"contact"`
	Why     string   `json:"why"`
	Since   float64  `json:"since"` // for how long the contact has been like that
	First   bool     `json:"first"` // whether it was so from the first look on
	Seen    *look    `json:"seen"`
	Age     float64  `json:"age"` // of what was seen
	More    int      `json:"more"`
	Stuck   int      `json:"stuck"`
	Failure string   `json:"failure"`
	State   *sidecar `json:"state"`
	Absence string   `json:"absence"`
	LostAgo float64  `json:"lostAgo"` // since something was lost; below 0 if the console has seen no loss
	Chart   chart    `json:"chart"`
}

func (w *watcher) overview(now time.Time) overview {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteAsked(now)
	shown := overview{
		Watched: now.Sub(w.past.begun).Seconds(), Contact: w.contact, Why: w.why, Since: now.Sub(w.since).Seconds(),
		First: !w.changed, Failure: w.doubt(), State: w.state, Absence: w.absence, LostAgo: unknown, Chart: w.past.chart(now),
	}
	if !w.past.lostAt.IsZero() {
		shown.LostAgo = now.Sub(w.past.lostAt).Seconds()
	}
	if w.seen != nil {
		first := *w.seen
		first.Ending = first.Ending[:min(len(first.Ending), mostBegun)]
		first.Contended, first.Circles = first.Contended[:min(len(first.Contended), mostBegun)], first.Circles[:min(len(first.Circles), mostBegun)]
		shown.Seen, shown.Age, shown.Stuck = &first, now.Sub(w.seen.at).Seconds(), w.seen.stuck()
		shown.More = len(w.seen.Contended) - len(first.Contended)
	}
	return shown
}

// doubt says why what was seen may not be so any more; it is empty if the last look was good. Without contact, the next look fails.
func (w *watcher) doubt() string {
	if w.failure == "" && (w.contact == contactLost || w.contact == contactNone) {
		return "no contact"
	}
	return w.failure
}

// waits are all waits that were seen.
type waits struct {
	Waits   []wait  `json:"waits"`
	Waiting int     `json:"waiting"`
	Omitted int     `json:"omitted"`
	Refused int     `json:"refused"`
	Age     float64 `json:"age"`
	Failure string  `json:"failure"`
}

func (w *watcher) waits(now time.Time) waits {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteAsked(now)
	shown := waits{Failure: w.doubt(), Waits: []wait{}}
	if w.seen == nil {
		shown.Failure = cmp.Or(shown.Failure, "the console has not looked yet")
	} else {
		shown.Waits, shown.Waiting, shown.Omitted, shown.Refused = w.seen.waits, w.seen.Waiting, w.seen.Omitted, w.seen.Refused
		shown.Age = now.Sub(w.seen.at).Seconds()
	}
	return shown
}

// serve answers with what a method of the watcher says.
func serve[T any](said func(time.Time) T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = show.JSON(w, said(time.Now())) // who asked has gone if this fails
	})
}
