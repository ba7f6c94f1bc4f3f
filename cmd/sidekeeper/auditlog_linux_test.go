package main

import (
	"io"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/sink"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

func TestTheFirstLineOnAFullDiskIsKnownToBeMissing(t *testing.T) {
	t.Parallel()
	const full = "/dev/full"
	to, book := sink.New(io.Discard), &expect.Logbook{}
	audit, err := (&settings{auditLog: full, auditStrict: true}).newAudit(to, book.Logger(), nil)
	if err != nil {
		t.Fatal(err)
	}
	expect.Same(t, "takes before anything was written", audit.Takes(), true)
	audit.log.Info("grant")
	written := make(chan bool, 1)
	audit.Written(0, func(all bool) { written <- all })
	expect.Same(t, "written", <-written, false)
	expect.Same(t, "takes", audit.Takes(), false)
	to.Close()
	said := book.Text()
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, `"file":"/dev/full","error":"write /dev/full: no space left on device"`) {
		t.Errorf("said: %s", said)
	}
}
