package fence

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A Store remembers the largest fencing token of each lock. All instances of a service that guard the same thing share one, and it outlives
// them: what it forgets lets a late call pass.
type Store interface {
	// Raise makes token the mark of the lock if it is larger, and returns the mark: token itself, or a larger one. When it returns the mark is
	// as durable as the Store makes it. Of two calls at once, one sees the mark of the other.
	Raise(ctx context.Context, lock string, token int64) (largest int64, err error)
}

// Options say which calls pass a Gate. With the zero value these are all whose tickets, of whatever locks, are not stale, and there is one.
type Options struct {
	// Locks are those of which each call must have a ticket. It should name what guards the service: else a ticket of any lock will do.
	Locks []string
	// WithoutTicket says which calls pass without the tickets, by gRPC's method, as in /shop.v1.Orders/List, or by HTTP's method and path, as in
	// `GET /orders`. The tickets that such a call has must still not be stale. Nil, none passes.
	WithoutTicket func(call string) bool
	// Verify is Client.Verify: asks the sidecar whether the ticket's hold lasts, before the gate believes its token. Without it, any caller can
	// keep all others out with an invented token. It costs each call a request to the ensemble.
	Verify func(ctx context.Context, ticket sidekeeper.Ticket) (held bool, current int64, err error)
	// Logger is told why calls are Undecided.
	Logger *slog.Logger
}

// A Gate lets those calls pass whose tickets are not stale.
type Gate struct {
	store   Store
	options Options
}

// NewGate is a gate with these marks.
func NewGate(store Store, options Options) *Gate {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	return &Gate{store, options}
}

// Admit lets a call pass, which raises the marks of its tickets, or returns a Refusal. The interceptors and the Handler call it with the
// values of Header. A ticket may become stale right afterwards: a service whose effects come late compares the token there again.
func (g *Gate) Admit(ctx context.Context, call string, values []string) ([]sidekeeper.Ticket, error) {
	tickets, err := g.admit(ctx, call, values)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) && refusal.Reason == Undecided {
		g.options.Logger.ErrorContext(ctx, "a call cannot be fenced", "call", call, "error", refusal.cause)
	}
	return tickets, err
}

func (g *Gate) admit(ctx context.Context, call string, values []string) ([]sidekeeper.Ticket, error) {
	tickets, err := Parse(values)
	if err != nil {
		return nil, err
	}
	if refusal := g.missing(tickets); refusal != nil && (g.options.WithoutTicket == nil || !g.options.WithoutTicket(call)) {
		return nil, refusal
	}
	if err := each(tickets, func(ticket sidekeeper.Ticket) error { return g.verify(ctx, ticket) }); err != nil {
		return nil, err // before any mark is raised: they are for holders alone
	}
	return tickets, each(tickets, func(ticket sidekeeper.Ticket) error { return g.raise(ctx, ticket) })
}

// missing is not nil if a ticket that is wanted is not there.
func (g *Gate) missing(tickets []sidekeeper.Ticket) *Refusal {
	if len(g.options.Locks) == 0 && len(tickets) == 0 {
		return missing("")
	}
	for _, lock := range g.options.Locks {
		if !slices.ContainsFunc(tickets, func(ticket sidekeeper.Ticket) bool { return ticket.Lock == lock }) {
			return missing(lock)
		}
	}
	return nil
}

func each(tickets []sidekeeper.Ticket, do func(sidekeeper.Ticket) error) error {
	for _, ticket := range tickets {
		if err := do(ticket); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) verify(ctx context.Context, ticket sidekeeper.Ticket) error {
	if g.options.Verify == nil {
		return nil
	}
	held, current, err := g.options.Verify(ctx, ticket)
	switch {
	case err != nil:
		return undecided(err)
	case !held:
		return notHeld(ticket, current)
	}
	return nil
}

func (g *Gate) raise(ctx context.Context, ticket sidekeeper.Ticket) error {
	largest, err := g.store.Raise(ctx, ticket.Lock, ticket.FencingToken)
	switch {
	case err != nil:
		return undecided(err)
	case largest > ticket.FencingToken:
		return stale(ticket, largest)
	}
	return nil
}
