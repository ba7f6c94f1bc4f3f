// Package goclient tests the Go client as its users have it: against a real sidecar, and from a module of its own.
package goclient
