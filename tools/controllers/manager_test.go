package controllers

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sidekeeper/sidekeeper/clients/go/k8s"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// manage is what docs/guide-elections.md shows.
func manage(ctx context.Context, config *rest.Config, pod string, options ctrl.Options, add func(ctrl.Manager) error) error {
	client, err := sidekeeper.Dial("") // where SIDEKEEPER_ADDRESS says
	if err != nil {
		return err
	}
	defer client.Close()
	gate := &k8s.Gate{}
	lock := k8s.NewLock(client, "scheduler", k8s.Options{Candidate: pod, Gate: gate})

	options.LeaderElection = true
	options.LeaderElectionResourceLockInterface = lock
	options.LeaderElectionConfig = config // for events, which who does not lead writes, too
	mgr, err := ctrl.NewManager(gate.Guard(config), options)
	if err != nil {
		return err
	}
	if err := add(mgr); err != nil {
		return err
	}
	ctx, cancel := lock.Context(ctx) // ends when the controllers must stop
	defer cancel()
	return mgr.Start(ctx) // then end the process: that hands leadership over
}

func TestAManagerOfControllerRuntimeActsOnlyWhileItLeads(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	t.Setenv(sidekeeper.AddressVariable, sidecar.Address())
	nowhere := &rest.Config{Host: "http://127.0.0.1:1"} // what it starts asks nothing of the API server
	one, asked, ended := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	options := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	go func() {
		ended <- manage(t.Context(), nowhere, "one", options, func(mgr ctrl.Manager) error {
			return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				close(one)
				<-ctx.Done()
				asked <- context.Cause(ctx)
				return nil
			}))
		})
	}()
	await(t, "the controller to act", one)
	two := elect(t, sidecar, "two")
	awaitCandidates(t, sidecar, 1)
	must(t, sidecar.Client().TransferLeadership(t.Context(), "scheduler", "two", sidekeeper.TransferOptions{}))
	await(t, "the controller to be asked to end", asked)
	if err := await(t, "the manager to end", ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the manager ends with %v", err)
	}
	await(t, "two to act", two.acts)
}

func TestTheGuideShowsWhatThisTestRuns(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide-elections.md")
	must(t, err)
	source, err := os.ReadFile("manager_test.go")
	must(t, err)
	_, shown, _ := strings.Cut(string(guide), "```go\nclient, err := sidekeeper.Dial")
	shown, _, found := strings.Cut(shown, "```")
	if !found || !strings.Contains(unindented(string(source)), unindented(shown)) {
		t.Errorf("no test runs\n%s", shown)
	}
}

func unindented(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		lines.WriteString(strings.TrimSpace(line) + "\n")
	}
	return lines.String()
}
