package link

import (
	"context"
	"maps"
)

// Connections is the number of connections that are open.
func (l *Link) Connections() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.connections)
}

// Held is the number of bytes the link has taken in and not delivered. Up to 8 MiB are held for each connection and
// direction; then the link stops reading, as a peer with a full window does.
func (l *Link) Held(direction Direction) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.held(direction)
}

// AwaitConnections returns nil once at least count connections are open, or the context's cause.
func (l *Link) AwaitConnections(ctx context.Context, count int) error {
	return l.await(ctx, func() bool { return len(l.connections) >= count })
}

// AwaitHeld returns nil once at least count bytes of a direction are held, or the context's cause.
func (l *Link) AwaitHeld(ctx context.Context, direction Direction, count int) error {
	return l.await(ctx, func() bool { return l.held(direction) >= count })
}

// Requests tells how many requests of each kind have been forwarded to the server since the link was opened or the
// count reset. Only a link that reads ZooKeeper's frames counts.
func (l *Link) Requests() map[Opcode]int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return maps.Clone(l.requests)
}

// ResetRequests begins the count of requests anew and returns the count so far; no request falls between the two.
func (l *Link) ResetRequests() map[Opcode]int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	counted := l.requests
	l.requests = map[Opcode]int{}
	return counted
}

// announce, called with the mutex held, has those who await something look again.
func (l *Link) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// await returns when the condition holds; it is evaluated with the mutex held.
func (l *Link) await(ctx context.Context, condition func() bool) error {
	for {
		l.mutex.Lock()
		holds, changed := condition(), l.changed
		l.mutex.Unlock()
		if holds {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// held is Held with the mutex held.
func (l *Link) held(direction Direction) int {
	total := 0
	for c := range l.connections {
		total += c.pumps[direction].size
	}
	return total
}
