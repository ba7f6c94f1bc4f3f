package goclient

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// planned is a sidecar with a schedule whose next tick is far away.
func planned(t *testing.T) (*sidekeeper.Client, schedulev1.ScheduleServiceClient) {
	t.Helper()
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	connection, err := grpc.NewClient(sidecar.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	schedules := schedulev1.NewScheduleServiceClient(connection)
	if _, err := schedules.Put(t.Context(), &schedulev1.PutRequest{Name: "report", Cron: "0 0 29 2 *"}); err != nil {
		t.Fatal(err)
	}
	return sidecar.Client(), schedules
}

func TestWorkReturnsTheTickThatItsCallerFinishes(t *testing.T) {
	t.Parallel()
	client, schedules := planned(t)
	lease, err := client.OpenLease(t.Context(), sidekeeper.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Work(t.Context(), "none", sidekeeper.WorkOptions{Lease: lease}); !errors.Is(err, sidekeeper.ErrScheduleNotFound) {
		t.Errorf("without a schedule: %v", err)
	}
	try := sidekeeper.WorkOptions{Lease: lease, Wait: new(time.Duration)}
	if _, err := client.Work(t.Context(), "report", try); !errors.Is(err, sidekeeper.ErrWaitTimeout) {
		t.Errorf("before a tick: %v", err)
	}
	if _, err := schedules.Run(t.Context(), &schedulev1.RunRequest{Name: "report", Id: "now"}); err != nil {
		t.Fatal(err)
	}
	tick, err := client.Work(t.Context(), "report", sidekeeper.WorkOptions{Lease: lease, Owner: "me"})
	if err != nil {
		t.Fatal(err)
	}
	if late := time.Since(tick.At()); tick.RunID() != "now" || tick.Number() != 1 || late < -time.Minute || late > time.Minute || !tick.Valid() {
		t.Errorf("run %s, attempt %d, %v late", tick.RunID(), tick.Number(), late)
	}
	if err := tick.Finish(t.Context(), sidekeeper.Succeeded, "made"); err != nil {
		t.Error(err)
	}
	if err := tick.Finish(t.Context(), sidekeeper.Failed, ""); !errors.Is(err, sidekeeper.ErrAlreadyDone) {
		t.Errorf("finished otherwise: %v", err)
	}
	history, err := schedules.History(t.Context(), &schedulev1.HistoryRequest{Name: "report"})
	if err != nil || len(history.GetOutcomes()) != 1 {
		t.Fatal(history, err)
	}
	if of := history.GetOutcomes()[0]; of.GetState() != schedulev1.State_STATE_SUCCEEDED || of.GetNote() != "made" || of.GetOwner() != "me" {
		t.Errorf("recorded: %v", of)
	}
}
