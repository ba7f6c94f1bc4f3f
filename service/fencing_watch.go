package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc"

	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
)

const mostWatchLocks = 100

func (f *fencingService) Watch(request *fencingv1.WatchRequest, stream grpc.ServerStreamingServer[fencingv1.WatchResponse]) error {
	locks, err := parseLocks(request.GetLocks())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	if err := f.services.watched.note(ctx, caller.Of(ctx).Identity, len(locks)); err != nil {
		return err
	}
	box, of, err := openWatch(request, stream, &fencingv1.WatchResponse{Keepalive: alive})
	if err != nil {
		return err
	}
	w := &tokenWatch{box: box, over: of, locks: make([]lockToken, len(locks))}
	ended := make(chan error, len(locks))
	for i, lock := range locks {
		w.locks[i].lock = lock
		shared := f.services.locks.watch(lock)
		caller.AfterStatus(stream.Context(), shared.leave)
		go func() { ended <- w.follow(i, shared, f.services.drain) }()
	}
	err = <-ended
	of.end(err)
	for range len(locks) - 1 {
		err = cmp.Or(err, <-ended) // the first says why
	}
	return err
}

func parseLocks(wire []string) ([]name, error) {
	if len(wire) == 0 || len(wire) > mostWatchLocks {
		return nil, invalid("locks", strconv.Itoa(len(wire))+" locks", fmt.Sprintf("1 to %d locks", mostWatchLocks))
	}
	locks := make([]name, len(wire))
	for i, lock := range wire {
		var err error
		if locks[i], err = parseName(fmt.Sprintf("locks[%d]", i), lock); err != nil {
			return nil, err
		}
		if slices.Contains(locks[:i], locks[i]) {
			return nil, invalid("locks", lock, "no lock twice")
		}
	}
	return locks, nil
}

// A tokenWatch is one Watch stream.
type tokenWatch struct {
	box  *outbox.Outbox[*fencingv1.WatchResponse]
	over over

	mu    sync.Mutex
	locks []lockToken // in the order of the request
}

// A lockToken is what is known of a lock, and what was told of it; nil before the first.
type lockToken struct {
	lock        name
	known, told *tokenShown
	largest     int64 // of all that were known
}

type tokenShown struct {
	token int64
	stale bool
}

// follow tells of one lock until the stream ends.
func (w *tokenWatch) follow(i int, shared *broadcast[name, *lockView], drain *drain) (err error) {
	defer contain(&err)
	return relay(shared, drain, w.over, func(now shown[*lockView]) error {
		if err := now.view.Readable(); err != nil {
			return err
		}
		var token int64
		if holders := now.view.Holders; len(holders) > 0 {
			token = holders[0].Token
		}
		w.mu.Lock()
		w.locks[i].learn(token, now.stale)
		w.mu.Unlock()
		w.box.Put(topicPlace, w.compose)
		return nil
	})
}

// learn takes over what is shown. A token that is smaller than an earlier one was read from a server that is behind.
func (l *lockToken) learn(token int64, stale bool) {
	if token != 0 && token < l.largest {
		token, stale = l.known.token, true
	}
	l.largest = max(l.largest, token)
	l.known = &tokenShown{token, stale}
}

// compose says what is different from what was told.
func (w *tokenWatch) compose() (*fencingv1.WatchResponse, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	response := &fencingv1.WatchResponse{}
	for i := range w.locks {
		of := &w.locks[i]
		if of.known == nil || of.told != nil && *of.told == *of.known {
			continue
		}
		of.told = of.known
		response.Tokens = append(response.Tokens, &fencingv1.CurrentToken{
			Lock: of.lock.text, FencingToken: of.known.token, Stale: of.known.stale,
		})
	}
	return response, len(response.GetTokens()) > 0
}
