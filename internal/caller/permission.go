package caller

import (
	"context"
	"sync"
)

// A Permission is what the caller of a stream has until it may not make the call any more. A nil one is never withdrawn.
type Permission struct {
	mu  sync.Mutex
	why error             // it was withdrawn; nil while it was not
	end func(cause error) // ends the stream; nil before the stream has said how
}

// Withdraw takes it away, and says why. The first reason stands.
func (p *Permission) Withdraw(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why == nil {
		p.why = why
		p.endLocked()
	}
}

// Ends has a stream ended, with the reason, when the permission is withdrawn, or at once if it was. end returns at once.
func (p *Permission) Ends(end func(cause error)) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = end
	p.endLocked()
}

func (p *Permission) endLocked() {
	if p.why != nil && p.end != nil {
		p.end(p.why)
	}
}

// permissionKey is of the permission in the context of a stream.
type permissionKey struct{}

// WithPermission is the context of a stream that ends when the permission is withdrawn.
func WithPermission(ctx context.Context, permission *Permission) context.Context {
	return context.WithValue(ctx, permissionKey{}, permission)
}

// An inner is the context of a call that comes inside of another one's stream: one value for all that the call has of its own.
type inner struct {
	context.Context //nolint:containedctx // it is one

	call       Call
	permission Permission
}

// Within is the context of a call that comes inside of another one's stream, with the number of that, and what withdraws its permission.
func Within(ctx context.Context) (context.Context, *Permission) {
	of := &inner{Context: ctx, call: Call{number: CallOf(ctx).number}}
	return of, &of.permission
}

// Value implements context.Context.
func (i *inner) Value(key any) any {
	switch key {
	case callKey{}:
		return &i.call
	case permissionKey{}:
		return &i.permission
	}
	return i.Context.Value(key)
}

// PermissionOf is the permission of the stream that ctx belongs to; nil if it has none.
func PermissionOf(ctx context.Context) *Permission {
	permission, _ := ctx.Value(permissionKey{}).(*Permission)
	return permission
}
