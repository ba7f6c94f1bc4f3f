// It is what tests from outside are given of what is inside.

package service

import (
	"context"

	devv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/dev/v1"
)

// NoEvents is for those who are told of some events only.
type NoEvents = noEvents

// NewDevService is a dev service without an ensemble that could do anything.
func NewDevService(services *Services) devv1.DevServiceServer { return &devService{services: services} }

// Digest is what a state directory calls a lease.
func Digest(lease string) string { return digestOf(lease).full() }

// SequenceUsers is how many calls are under way for a sequence; −1 if it is not remembered.
func SequenceUsers(services *Services, sequence string) int {
	services.issuers.mu.Lock()
	defer services.issuers.mu.Unlock()
	if found := services.issuers.known[issuing{sequence: name{sequence}}]; found != nil {
		return found.users
	}
	return -1
}

// WatchedNodes is how many nodes watches stand on.
func WatchedNodes(services *Services) int {
	services.watched.mu.Lock()
	defer services.watched.mu.Unlock()
	return services.watched.sum
}

// SessionOf is the session on which a lease stands, if that is not over.
func SessionOf(ctx context.Context, services *Services, lease string) int64 {
	found, err := services.leases.find(ctx, lease)
	if err != nil {
		return 0
	}
	return found.session.Key().ID
}

// Stopping is closed when a drain has begun.
func Stopping(services *Services) <-chan struct{} { return services.drain.notice }
