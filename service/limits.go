package service

import "sync/atomic"

// A streamCount counts the long-lived streams of one connection.
type streamCount struct{ open atomic.Int64 }
