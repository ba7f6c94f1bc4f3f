package endtoend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// What docs/runbook.md says of replacing the servers of an ensemble: one after the other, each new one is added before an old one is
// removed and stopped, until there is none left of those that the sidecars were started with.
func TestReplacingEveryServerOfTheEnsembleLosesNothing(t *testing.T) {
	closeShared()
	e, err := ensemble.Start(t.Context(), ensemble.Options{
		TickTime: quickTick, MaxSessionTimeout: 30 * time.Second, ContainerCheck: 500 * time.Millisecond, Reconfigurable: true,
		MaxClientConnections: -1,
	})
	must(t, err)
	t.Cleanup(e.Close)
	var named []string
	for _, server := range e.Servers() {
		named = append(named, server.RealAddress())
	}
	with := setup{servers: named, tick: quickTick, timeout: 15 * time.Second}
	one := setup{servers: named[:1], tick: quickTick, timeout: 15 * time.Second}
	a, b := startSidecar(t, with), startSidecar(t, one)
	crowd := newRollingCrowd(t, a, b)
	serving := e.Servers()
	for range named {
		crowd.rest(t)
		old := serving[0]
		added, err := e.Add()
		must(t, err)
		serving = append(serving[1:], added)
		reconfigure(t, serving, []string{added.Member()}, nil)
		reconfigure(t, serving, nil, []string{fmt.Sprint(old.ID())})
		for _, s := range crowd.sidecars {
			s.awaitMoved(t, old.RealAddress(), added.RealAddress())
		}
		old.Stop()
		crowd.calm(t)
		crowd.tell(t, fmt.Sprintf("server %d in place of server %d", added.ID(), old.ID()))
	}
	crowd.finish(t)
}

// awaitMoved returns when the sidecar's log says that its servers are others.
func (s *sidecar) awaitMoved(t *testing.T, from, to string) {
	t.Helper()
	for began := now(); ; await(t, "a moment", patient, after(50*time.Millisecond)) {
		log, err := os.ReadFile(filepath.Join(s.folder, "log"))
		must(t, err)
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, `"list of servers changed"`) && strings.Contains(line, to) && !strings.Contains(line, from) {
				return
			}
		}
		if now().since(began) > patient {
			t.Fatalf("servers are not yet those with %s and without %s", to, from)
		}
	}
}

// reconfigure adds servers and removes others by their ids, once the ensemble can: servers may be about to join it, or to elect a leader.
func reconfigure(t *testing.T, through []*ensemble.Server, joining, leaving []string) {
	t.Helper()
	var addresses []string
	for _, server := range through {
		addresses = append(addresses, server.RealAddress())
	}
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	for {
		err := tryReconfigure(addresses, joining, leaving)
		if err == nil {
			return
		}
		t.Logf("joining %q, leaving %q: %v", joining, leaving, err)
		await(t, "another try", patient, after(200*time.Millisecond))
		must(t, ctx.Err())
	}
}

func tryReconfigure(addresses, joining, leaving []string) error {
	conn, events, err := zk.Connect(addresses, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	defer conn.Close()
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	_, err = conn.IncrementalReconfig(joining, leaving, -1)
	return err
}
