package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// What is remembered of sequences: how far they are, and what was reserved of them for RELAXED callers.
const (
	mostIssuers    = 10000 // are remembered at the same time
	issuerIdle     = time.Minute
	issuersSweeped = 10 * time.Second // how often it is looked for what can be forgotten
)

// issuers are the sequences that callers of this sidecar use. One that nobody has used for a minute is forgotten, and what
// was reserved of it is lost; one that does not exist is never remembered.
type issuers struct {
	store     recipes.Store
	directory directory
	drain     *drain
	events    Events
	fetches   openCount // under way, in goroutines of their own; Drain waits for them

	mu    sync.Mutex
	known map[issuing]*issuer
	swept time.Time
}

// An issuing is what the numbers of one compare-and-set have in common.
type issuing struct {
	sequence name
	guards   string
}

// An issuer is one sequence, while it is remembered.
type issuer struct {
	*recipes.Issuer

	own    *issuer // the sequence's, of a guarded one
	users  int     // calls under way
	exists bool
	used   time.Time
}

func newIssuers(options Options, store recipes.Store, drain *drain) *issuers {
	return &issuers{
		store: countedStore{store, options.Events.SequenceWritten}, directory: directory{root: options.SequenceRoot}, drain: drain,
		events: options.Events, known: map[issuing]*issuer{},
	}
}

// next issues numbers, unless the sidecar begins to stop.
func (i *issuers) next(
	ctx context.Context, sequence name, under guards, count int64, relaxed bool,
) (numbers recipes.Numbers, err error) {
	if i.drain.hasBegun() {
		return recipes.Numbers{}, errStopping
	}
	ctx, release := i.drain.bound(ctx)
	defer release()
	from := i.enter(sequence, under)
	defer func() { i.leave(issuing{sequence, under.key()}, err) }()
	if !relaxed {
		numbers, err = from.Next(ctx, count)
		return numbers, i.counted("STRICT", count, err)
	}
	numbers, low, err := from.NextRelaxed(ctx, count)
	if low {
		i.fetch(sequence)
	}
	return numbers, i.counted("RELAXED", count, err)
}

func (i *issuers) counted(ordering string, count int64, err error) error {
	if err == nil {
		i.events.NumbersIssued(ordering, count)
	}
	return err
}

// fetch reserves numbers ahead of need. It is not waited for: callers are served from what is left meanwhile.
func (i *issuers) fetch(sequence name) {
	from := i.enter(sequence, guards{})
	i.fetches.enter(mostIssuers)
	run(func() (struct{}, error) {
		defer i.fetches.leave()
		err := from.Refill(i.drain.stopping)
		i.leave(issuing{sequence: sequence}, err)
		return struct{}{}, err // whoever needs numbers meets it too
	})
}

// enter finds or makes an issuer. A guarded one is remembered together with the sequence's own, from which it knows how far that has come.
func (i *issuers) enter(sequence name, under guards) *issuer {
	i.mu.Lock()
	defer i.mu.Unlock()
	own := i.use(issuing{sequence: sequence}, nil, func() *recipes.Issuer {
		return recipes.NewIssuer(i.directory.sequence(sequence), i.store)
	})
	if len(under.all) == 0 {
		return own
	}
	return i.use(issuing{sequence, under.key()}, own, func() *recipes.Issuer { return own.Guarded(under.places()) })
}

// use counts a call. A guarded issuer whose own was forgotten, while nobody used either, is made anew. The lock is held.
func (i *issuers) use(what issuing, own *issuer, fresh func() *recipes.Issuer) *issuer {
	now := time.Now()
	if now.Sub(i.swept) > issuersSweeped || len(i.known) >= mostIssuers {
		i.sweep(now)
	}
	found := i.known[what]
	if found == nil || found.own != own {
		found = &issuer{Issuer: fresh(), own: own}
		i.known[what] = found
	}
	found.users++
	found.used = now
	return found
}

func (i *issuers) leave(what issuing, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.disuse(what, err)
	if what.guards != "" {
		i.disuse(issuing{sequence: what.sequence}, err)
	}
}

// disuse ends a call. The lock is held.
func (i *issuers) disuse(what issuing, err error) {
	from := i.known[what]
	from.users--
	switch {
	case err == nil:
		from.exists = true
	case errors.Is(err, recipes.ErrNoSequence):
		from.exists = false
	}
	if from.users == 0 && !from.exists {
		delete(i.known, what)
	}
}

// sweep forgets what nobody has used lately and, if there is still too much, one that nobody uses.
func (i *issuers) sweep(now time.Time) {
	i.swept = now
	var oldest issuing
	for what, known := range i.known {
		if known.users > 0 {
			continue
		}
		if now.Sub(known.used) > issuerIdle {
			delete(i.known, what)
		} else if before, ok := i.known[oldest]; !ok || known.used.Before(before.used) {
			oldest = what
		}
	}
	if len(i.known) >= mostIssuers {
		delete(i.known, oldest)
	}
}

// A countedStore tells what became of the writes, in a word of WriteOutcomes.
type countedStore struct {
	recipes.Store

	tell func(outcome string)
}

// WriteOutcomes are what may become of a write. A conflict is with another writer; what an access control or a quota forbids is refused.
var WriteOutcomes = []string{"committed", "conflict", "not_sent", "refused", "unknown"}

// Commit implements recipes.Store.
func (c countedStore) Commit(ctx context.Context, changes ...recipes.Change) ([]recipes.Node, error) {
	nodes, err := c.Store.Commit(ctx, changes...)
	_, refused := errors.AsType[*recipes.Refusal](err)
	switch {
	case err == nil:
		c.tell("committed")
	case errors.Is(err, recipes.ErrBadVersion), errors.Is(err, recipes.ErrExists), errors.Is(err, recipes.ErrNoNode):
		c.tell("conflict")
	case refused, errors.Is(err, recipes.ErrDenied):
		c.tell("refused")
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		c.tell("unknown")
	default:
		c.tell("not_sent")
	}
	return nodes, err
}
