package ensemble

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// glance is how often servers are asked how they are while something is awaited.
const glance = 20 * time.Millisecond

// Leader is the server that leads, or nil if none does. Of two that say so it is the one elected later.
func (e *Ensemble) Leader(ctx context.Context) *Server {
	return leader(statuses(ctx, e.servers)).server
}

// Followers is the servers that follow a leader.
func (e *Ensemble) Followers(ctx context.Context) []*Server {
	var followers []*Server
	for _, each := range statuses(ctx, e.servers) {
		if each.role == Follower {
			followers = append(followers, each.server)
		}
	}
	return followers
}

// AwaitQuorum returns the leader among the servers given (all of them if none is) once it has one and is followed by
// enough of the ensemble to commit. It is how to wait for a new leader, among the others, when one was killed or cut off.
func (e *Ensemble) AwaitQuorum(ctx context.Context, among ...*Server) (*Server, error) {
	if len(among) == 0 {
		among = e.servers
	}
	var found *Server
	err := await(ctx, among, func(now []status) bool {
		first := leader(now)
		found = first.server
		return found != nil && first.followers >= len(e.servers)/2
	})
	return found, err
}

// AwaitAll returns nil once every server that runs, and is not frozen, serves clients, and there is a quorum.
func (e *Ensemble) AwaitAll(ctx context.Context) error {
	err := await(ctx, e.servers, func(now []status) bool {
		for _, each := range now {
			if !each.role.serving() && !each.server.asleep() {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	_, err = e.AwaitQuorum(ctx)
	if err != nil {
		return err
	}
	return e.awaitListening(ctx)
}

// awaitListening returns nil once every server that runs listens for the clients that are to use it: a standalone server
// serves clients without TLS before it listens for those with it.
func (e *Ensemble) awaitListening(ctx context.Context) error {
	return await(ctx, e.servers, func(now []status) bool {
		for _, each := range now {
			if !each.server.asleep() && !each.server.listens(ctx) {
				return false
			}
		}
		return true
	})
}

// await asks servers how they are until the condition holds.
func await(ctx context.Context, servers []*Server, condition func([]status) bool) error {
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for {
		now := statuses(ctx, servers)
		if condition(now) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("ensemble: %w: %s", context.Cause(ctx), summary(now))
		}
	}
}

// statuses asks servers at the same time.
func statuses(ctx context.Context, servers []*Server) []status {
	found := make([]status, len(servers))
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() { found[i] = s.status(ctx) })
	}
	asking.Wait()
	return found
}

// leader is the status of the leader, or the zero value.
func leader(now []status) status {
	var first status
	for _, each := range now {
		leads := each.role == Leader || each.role == Standalone
		if leads && (first.server == nil || each.epoch > first.epoch) {
			first = each
		}
	}
	return first
}

func summary(now []status) string {
	var parts []string
	for _, each := range now {
		parts = append(parts, fmt.Sprintf("server %d is %s", each.server.id, each.role))
	}
	return strings.Join(parts, ", ")
}
