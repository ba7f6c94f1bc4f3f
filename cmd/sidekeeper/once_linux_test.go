package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

func TestACommandWhoseGuardianIsKilledIsLost(t *testing.T) {
	t.Parallel()
	w := worker{t, sidekeepertest.Start(t, sidekeepertest.Options{})}
	r := w.begins("k", "--", os.Args[0], "family", "parent", "stay")
	syscall.Kill(r.numbers(2)[0], syscall.SIGKILL)
	r.want(t, 128+9)
	w.lost("k")
}
