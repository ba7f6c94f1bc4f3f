package caller

import (
	"context"
	"sync"
)

// A Permission is what the caller of a stream has until it may not make the call any more. A nil one is not withdrawn.
type Permission struct {
	withdrawn chan struct{}
	once      sync.Once
	why       error
}

// NewPermission gives one.
func NewPermission() *Permission { return &Permission{withdrawn: make(chan struct{})} }

// Withdraw takes it away, and says why. The first reason stands.
func (p *Permission) Withdraw(why error) {
	p.once.Do(func() {
		p.why = why
		close(p.withdrawn)
	})
}

// Withdrawn is closed when it has been withdrawn.
func (p *Permission) Withdrawn() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.withdrawn
}

// Why says why it was withdrawn, once it has been.
func (p *Permission) Why() error { return p.why }

// permissionKey is of the permission in the context of a stream.
type permissionKey struct{}

// WithPermission is the context of a stream that ends when the permission is withdrawn.
func WithPermission(ctx context.Context, permission *Permission) context.Context {
	return context.WithValue(ctx, permissionKey{}, permission)
}

// PermissionOf is the permission of the stream that ctx belongs to; nil if it has none.
func PermissionOf(ctx context.Context) *Permission {
	permission, _ := ctx.Value(permissionKey{}).(*Permission)
	return permission
}
