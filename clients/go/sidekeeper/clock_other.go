//go:build !linux && !darwin

package sidekeeper

import "time"

// coarse is the longest that Windows lets pass from one reading of its clock to the next.
const coarse = 16 * time.Millisecond

var started = time.Now()

// systemTime is Go's monotonic clock. On some systems it stands still while the machine is suspended: then a lock may be
// thought valid after waking up, until the next answer of the sidecar.
func systemTime() time.Duration { return time.Since(started) }
