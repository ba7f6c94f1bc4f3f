// Package full marks the tests that `go test -short` leaves out: those that need servers, the network, another language or minutes.
package full

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// Needs skips the test with -short, and says what it needs.
func Needs(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short: needs " + what)
	}
}

// Lacks skips the test on a machine that lacks something, and says what. In CI, where nothing may be lacking, the test fails.
func Lacks(t testing.TB, what ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what...)
	}
	t.Skip(what...)
}

// AllNeed ends the program, as a success, with -short: all tests of a package need the same. It is for TestMain.
func AllNeed(what string) {
	flag.Parse()
	if testing.Short() {
		fmt.Fprintln(os.Stderr, "left out by -short: all tests of this package need", what)
		os.Exit(0)
	}
}
