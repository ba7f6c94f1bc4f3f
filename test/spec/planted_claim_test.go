//go:build spec

package spec_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/test/simulation"
	"github.com/sidekeeper/sidekeeper/test/traces"
)

const reserved, behind = "/locks/orders/_c_9-claim-lock-0", "/locks/orders/_c_2-lock-1"

// besideAClaim is what is told of a lock that is claimed, and of a caller that waits for it. The caller is granted the lock before the step with
// this number: 3 is the one that ends the claim.
func besideAClaim(t *testing.T, granted int) traces.LockTrace {
	t.Helper()
	r := traces.NewRecorder()
	for i, step := range []func(){
		func() { r.Change(simulation.Change{Session: 8, Zxid: 11, Made: []string{reserved}}) },
		func() { r.Step(trace.Step{Kind: trace.Granted, Place: reserved, Token: 11}) },
		func() {
			r.Step(trace.Step{Kind: trace.Asked, Session: 2, Place: "/locks/orders/_c_2-lock-"})
			r.Change(simulation.Change{Session: 2, Zxid: 12, Made: []string{behind}})
			r.Step(trace.Step{Kind: trace.Made, Session: 2, Place: behind})
		},
		func() { r.Change(simulation.Change{Session: 9, Zxid: 14, Gone: []simulation.Lost{{Path: reserved}}}) },
		func() {
			r.Step(trace.Step{Kind: trace.Leaving, Session: 2, Place: behind})
			r.Change(simulation.Change{Session: 2, Zxid: 15, Gone: []simulation.Lost{{Path: behind, Owner: 2}}})
			r.Step(trace.Step{Kind: trace.Left, Session: 2, Place: behind})
		},
	} {
		if i == granted {
			r.Step(trace.Step{Kind: trace.Granted, Place: behind, Token: 12})
		}
		step()
	}
	folder := t.TempDir()
	if err := r.Write(filepath.Join(folder, "claim.jsonl")); err != nil {
		t.Fatal(err)
	}
	recorded, err := traces.Read(folder)
	if err != nil || len(recorded) != 1 {
		t.Fatalf("%d records, %v", len(recorded), err)
	}
	for i := range recorded[0] {
		recorded[0][i].At = time.Duration(i)
	}
	return traces.Locks(recorded[0])[0]
}

func TestTracesInWhichALockIsGrantedBesideAClaimAreRefused(t *testing.T) {
	t.Parallel()
	early := besideAClaim(t, 4)
	early.Steps = moved(early.Steps, 3, 10) // the claim is granted beside its follower
	refused := lockModel(2, 0).refuse(t, []traces.LockTrace{besideAClaim(t, 4), besideAClaim(t, 3), early})
	if len(refused) != 2 || refused[1] != 8 || refused[2] == 0 {
		t.Errorf("refused are %v, by their steps", refused)
	}
}
