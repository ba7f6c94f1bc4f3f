//go:build traced

package dev

import (
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// init has what the ensemble commits written into a file beside the sidecar's steps, as test/traces reads it: the ensemble's transaction log.
func init() {
	write := sync.OnceValue(func() func(any) { return trace.File("ensemble-%d.log") })
	committed = func(change embedded.Change) {
		write()(struct {
			At int64 // of the epoch
			embedded.Change
		}{time.Now().UnixNano(), change})
	}
}
