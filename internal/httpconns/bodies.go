package httpconns

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// Bodies are the bodies of requests that are read at a time. One too many waits for its turn. While one waits, those that are read have a
// quarter of a second: a silent caller takes a place for no longer.
type Bodies struct {
	Check func(r *http.Request, body []byte) error // what a body is refused for; may be nil
	Whose func(r *http.Request) string             // of whom one has three quarters of the places at most; nil or "" if that is not known

	longest int64
	within  time.Duration

	most   int64
	places *semaphore.Weighted

	mu      sync.Mutex
	waiting map[string]int // for their turns, by whose they are
	sum     int            // of them
	reading map[*reading]struct{}
	shares  map[string]*sharing
}

const (
	mostWaiting = 512                    // bodies wait for their turns
	longestWait = 5 * time.Second        // of each
	yields      = 250 * time.Millisecond // which a body has to come while others wait
)

// A sharing is the places of one caller.
type sharing struct {
	places *semaphore.Weighted
	users  int
}

// A reading is one body that is read.
type reading struct {
	whose    string
	out      *http.ResponseController
	deadline time.Time
	since    time.Time
	hurried  bool
}

// NewBodies bounds them to so many, of so many bytes each, which have so long to come.
func NewBodies(most int, longest int64, within time.Duration) *Bodies {
	return &Bodies{
		longest: longest, within: within, most: int64(most), places: semaphore.NewWeighted(int64(most)),
		waiting: map[string]int{}, reading: map[*reading]struct{}{}, shares: map[string]*sharing{},
	}
}

// Given has a handler given whole bodies.
func (b *Bodies) Given(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leave := b.Read(w, r); leave != nil {
			leave()
			handler.ServeHTTP(w, r)
		}
	})
}

var errBusy = errors.New("too many requests are on their way")

// Read takes in the whole body of a request, which keeps its place until it leaves. It returns nil when it has answered that the body is too
// long or did not come in time.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request) (left func()) {
	own := &reading{out: http.NewResponseController(w)}
	if b.Whose != nil {
		own.whose = b.Whose(r)
	}
	leave, err := b.enter(r.Context(), own)
	if err != nil {
		_ = own.out.SetReadDeadline(time.Now().Add(lingers))
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return nil
	}
	defer func() {
		if left == nil {
			leave()
		}
	}()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, b.longest))
	late := b.read(own, err == nil && r.Context().Err() == nil)
	if late && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	if code, reason := b.refuses(r, body, late, err); code != 0 {
		http.Error(w, reason, code)
		return nil
	}
	r.Body = &whole{rest: body}
	return leave
}

// refuses says why a body is not taken.
func (b *Bodies) refuses(r *http.Request, body []byte, late bool, err error) (code int, reason string) {
	switch {
	case late:
		return http.StatusServiceUnavailable, "the request did not come while others waited"
	case err != nil:
		return http.StatusRequestEntityTooLarge, "the request is too long, or did not come in time"
	}
	waits(r, false)
	if b.Check != nil {
		if err := b.Check(r, body); err != nil {
			return http.StatusRequestEntityTooLarge, err.Error()
		}
	}
	return 0, ""
}

// enter waits for a place, and begins to read.
func (b *Bodies) enter(ctx context.Context, own *reading) (leave func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	share := b.shareOf(own.whose)
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	if err := b.acquire(ctx, share.places, own.whose); err != nil {
		b.left(own.whose, share)
		return nil, err
	}
	if err := b.acquire(ctx, b.places, ""); err != nil {
		share.places.Release(1)
		b.left(own.whose, share)
		return nil, err
	}
	own.since = time.Now()
	b.reading[own] = struct{}{}
	b.setDeadline(own)
	return func() {
		b.places.Release(1)
		share.places.Release(1)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.left(own.whose, share)
	}, nil
}

// acquire takes a place of those. While it waits, it hurries who has them. It is locked, but not meanwhile.
func (b *Bodies) acquire(ctx context.Context, places *semaphore.Weighted, whose string) error {
	switch {
	case places.TryAcquire(1):
		return nil
	case b.sum == mostWaiting, whose != "" && b.waiting[whose] == mostWaiting-mostWaiting/4:
		return errBusy
	}
	b.waiting[whose]++
	b.sum++
	for each := range b.reading {
		b.setDeadline(each)
	}
	b.mu.Unlock()
	err := places.Acquire(ctx, 1)
	b.mu.Lock()
	b.sum--
	if b.waiting[whose]--; b.waiting[whose] == 0 {
		delete(b.waiting, whose)
	}
	if err != nil {
		return errBusy
	}
	return nil
}

// shareOf is the places of one caller: three quarters, or all where it is not known whose they are. It is locked.
func (b *Bodies) shareOf(whose string) *sharing {
	share, most := b.shares[whose], b.most
	if whose != "" {
		most -= most / 4
	}
	if share == nil {
		share = &sharing{places: semaphore.NewWeighted(most)}
		b.shares[whose] = share
	}
	share.users++
	return share
}

// left notes that one of a caller's bodies has gone. It is locked.
func (b *Bodies) left(whose string, share *sharing) {
	if share.users--; share.users == 0 {
		delete(b.shares, whose)
	}
}

// setDeadline gives a body its time. A deadline is supported by every connection, and not by what tests write to. It is locked.
func (b *Bodies) setDeadline(of *reading) {
	within := b.within
	if b.waiting[""] > 0 || b.waiting[of.whose] > 0 {
		of.hurried = true
		within = min(within, yields)
	}
	if deadline := of.since.Add(within); of.deadline.IsZero() || deadline.Before(of.deadline) {
		of.deadline = deadline
		_ = of.out.SetReadDeadline(deadline)
	}
}

// read says whether a body was too late for those who waited. The rest of one that did not come gets little time: the server waits for it when
// it answers.
func (b *Bodies) read(own *reading, came bool) (late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.reading, own)
	now := time.Now()
	late = !came && own.hurried && !now.Before(own.deadline)
	if came {
		_ = own.out.SetReadDeadline(time.Time{})
	} else {
		_ = own.out.SetReadDeadline(now.Add(lingers))
	}
	return late
}

// A whole body was read, and is forgotten as it is read again: who asks for a stream may be there for long.
type whole struct{ rest []byte }

func (w *whole) Read(into []byte) (n int, err error) {
	if n = copy(into, w.rest); n == len(w.rest) {
		w.rest, err = nil, io.EOF
	} else {
		w.rest = w.rest[n:]
	}
	return n, err
}

func (w *whole) Close() error {
	w.rest = nil
	return nil
}
