package console

import (
	"context"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// How all locks are looked into, so that they can be searched by who is there.
const (
	lookers  = 4
	whoTime  = 30 * time.Second
	mostSeen = 1000 // callers at one lock
)

// who answers with the owners and identities at each lock. It leaves out what it cannot read, and what it has no time for.
func (o Options) who(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), whoTime)
	defer cancel()
	locks := lockv1.NewLockServiceClient(o.Connection)
	all, err := listAll(ctx, locks)
	if err != nil {
		http.Error(w, status.Convert(err).Message(), http.StatusBadGateway)
		return
	}
	names := make(chan string, len(all))
	for _, lock := range all {
		names <- lock.GetName()
	}
	close(names)
	var mu sync.Mutex
	var looks sync.WaitGroup
	found := map[string][]string{}
	for range lookers {
		looks.Go(func() {
			for name := range names {
				response, err := locks.Get(ctx, &lockv1.GetRequest{Name: name})
				if err != nil {
					continue
				}
				mu.Lock()
				found[name] = wordsOf(response.GetView())
				mu.Unlock()
			}
		})
	}
	looks.Wait()
	w.Header().Set("Content-Type", "application/json")
	_ = show.JSON(w, found) // who asked has gone if this fails
}

// wordsOf are what those at a lock are called, each word once.
func wordsOf(view *lockv1.View) []string {
	words, known := []string{}, map[string]bool{"": true}
	for _, all := range [][]*holdv1.Contender{view.GetHolders(), view.GetWaiters()} {
		for _, one := range all[:min(len(all), mostSeen)] {
			for _, word := range []string{one.GetOwner(), one.GetIdentity()} {
				if !known[word] {
					words, known[word] = append(words, word), true
				}
			}
		}
	}
	return words
}
