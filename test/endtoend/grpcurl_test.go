package endtoend

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// A terminal is one in which somebody has typed the command from the README.
type terminal struct{ *process }

func typeAcquire(t *testing.T, address string) terminal {
	t.Helper()
	program, err := grpcurl()
	must(t, err)
	command := exec.Command(program, "-plaintext", "-d", `{"name":"orders"}`, address, "sidekeeper.lock.v1.LockService/Acquire")
	folder, err := os.MkdirTemp("", "terminal-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	command.Stdin = nil
	return terminal{start(t, filepath.Join(folder, "errors"), command)}
}

// tokenLine is the last line of a grant; in that of a holder more follows.
var tokenLine = regexp.MustCompile(`"fencingToken": "(\d+)"$`)

// granted waits until the terminal shows the grant.
func (s terminal) granted(t *testing.T) (token int64, at moment) {
	t.Helper()
	s.shows(t, `"granted": {`)
	line := s.lines.await(t, "token", patient, tokenLine.MatchString)
	token, err := strconv.ParseInt(tokenLine.FindStringSubmatch(line.what)[1], 10, 64)
	must(t, err)
	return token, line.at
}

func (s terminal) shows(t *testing.T, text string) moment {
	t.Helper()
	return s.lines.await(t, text, patient, func(line string) bool { return strings.Contains(line, text) }).at
}

// The scene that the README tells: two terminals, Ctrl-C in one, the ensemble cut off.
func TestTheSceneInTwoTerminals(t *testing.T) {
	e := ensembleOf(t, defaultTick)
	here, there := sceneSidecar(t, e, 4*time.Second), sceneSidecar(t, e, 15*time.Second, e.Server(2), e.Server(3))

	first := typeAcquire(t, here)
	before, _ := first.granted(t)
	second := typeAcquire(t, here)
	second.shows(t, `"queued": {`)
	first.signal(syscall.SIGINT)
	token, _ := second.granted(t)
	if token <= before {
		t.Errorf("fencing token %d after %d", token, before)
	}

	third := typeAcquire(t, there)
	third.shows(t, `"queued": {`)
	e.Server(1).ClientLink().Drop()
	second.shows(t, `"suspended": {`)
	second.shows(t, `"remaining": "`)
	if code := second.awaitExit(t, patient); code == 0 {
		t.Error("the terminal shows success")
	}
	ended := now()
	after, granted := third.granted(t)
	if granted < ended || after <= token {
		t.Errorf("granted %v after the end with fencing token %d after %d", granted.since(ended), after, token)
	}
	t.Logf("granted %v after the other terminal had ended", granted.since(ended))
}

// sceneSidecar starts a sidecar that people can call and returns its address. Without servers it knows only the first.
func sceneSidecar(t *testing.T, e *ensemble.Ensemble, timeout time.Duration, servers ...*ensemble.Server) string {
	t.Helper()
	if len(servers) == 0 {
		servers = e.Servers()[:1]
	}
	var addresses []string
	for _, server := range servers {
		addresses = append(addresses, server.Address())
	}
	s := startSidecar(t, setup{
		servers: addresses, tick: defaultTick, timeout: timeout, flags: []string{"--listen=127.0.0.1:0", "--reflection"},
	})
	address, _ := s.awaitLine(t, "listening on 127", patient)
	return "127" + address
}
