package zookeeper

import "time"

var started = time.Now()

// now reads Go's monotonic clock, which on Windows goes on during sleep. No sidecar runs there.
func now() instant { return instant(time.Since(started)) }
