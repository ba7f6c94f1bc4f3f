// It is what tests share that look inside.

package server

import (
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

type logbook = expect.Logbook

var (
	same    = expect.Same
	outcome = expect.Outcome
	must    = expect.Must
)
