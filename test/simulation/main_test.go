package simulation_test

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(800) // the library throws megabytes away for each connection
	goleak.VerifyTestMain(m)
}
