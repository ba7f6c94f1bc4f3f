// Package bubble runs tests in virtual time, as testing/synctest does.
package bubble

import (
	"testing"
	"testing/synctest"
)

// Test is synctest.Test, on one processor where the race detector cannot bear two.
func Test(t *testing.T, test func(*testing.T)) {
	t.Helper()
	defer enter()()
	synctest.Test(t, test)
}
