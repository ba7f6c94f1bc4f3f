//go:build !linux

package sidekeeper

import "time"

var started = time.Now()

// systemTime is Go's monotonic clock. On some systems it stands still while the machine is suspended: then a lock may be
// thought valid after waking up, until the next answer of the sidecar.
func systemTime() time.Duration { return time.Since(started) }
