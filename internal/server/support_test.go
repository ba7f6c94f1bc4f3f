package server_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

const patient = expect.Patient

type logbook = expect.Logbook

var (
	same    = expect.Same
	outcome = expect.Outcome
	must    = expect.Must
	within  = expect.Within
)

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	return expect.Receive(t, from)
}

func uid() string { return strconv.Itoa(os.Getuid()) }
