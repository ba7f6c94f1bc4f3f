package service_test

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	devv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/dev/v1"
	"github.com/sidekeeper/sidekeeper/service"
)

func TestASidecarInFrontOfARealEnsembleOffersNoFaults(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	connection, err := grpc.NewClient("unix:"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.must(err)
	t.Cleanup(func() { _ = connection.Close() })
	_, err = devv1.NewDevServiceClient(connection).Suspend(s.context(), &devv1.SuspendRequest{})
	same(t, "Suspend", outcome(err), "Unimplemented")
}

func TestFaultsAreRefusedWhoseFieldsBreakARule(t *testing.T) {
	t.Parallel()
	d := service.NewDevService(newScene(t).services) // without an ensemble that could do anything
	for _, duration := range []*durationpb.Duration{nil, lasting(-time.Second), lasting(25 * time.Hour)} {
		_, err := d.Suspend(t.Context(), &devv1.SuspendRequest{Duration: duration})
		same(t, "Suspend", service.ReasonOf(err), "INVALID_FIELD")
		_, err = d.DelayGrants(t.Context(), &devv1.DelayGrantsRequest{Delay: duration})
		same(t, "DelayGrants", service.ReasonOf(err), "INVALID_FIELD")
	}
	for _, wrong := range []struct {
		request *devv1.ExpireLeaseRequest
		reason  string
	}{
		{&devv1.ExpireLeaseRequest{}, "INVALID_FIELD"},
		{&devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_All{}}, "INVALID_FIELD"},
		{&devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_LeaseId{LeaseId: "me"}}, "INVALID_FIELD"},
		{&devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_LeaseId{LeaseId: "00000000000000000000000000000000"}}, "LEASE_NOT_FOUND"},
		{&devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_Lock{Lock: "../orders"}}, "INVALID_FIELD"},
		{&devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_Lock{Lock: "orders"}}, "HOLD_NOT_FOUND"},
	} {
		_, err := d.ExpireLease(t.Context(), wrong.request)
		same(t, wrong.request.String(), service.ReasonOf(err), wrong.reason)
	}
}
