// Package alerts holds the tests of the alert rules and the dashboard: that every metric and label in them is one that the
// sidecar shows, that every alert has its section in the runbook, and that each fires when it should and not when it should
// not. It is a module of its own, since what evaluates rules is Prometheus itself.
package alerts
