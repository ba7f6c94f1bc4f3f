package service_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

func TestMembershipFieldsThatBreakARuleAreRefused(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		long := strings.Repeat("x", 65)
		joins := map[string][]*membershipv1.JoinRequest{
			"group": {
				{Member: "a"},
				{Group: "a//b", Member: "a"},
				{Group: "..", Member: "a"},
				{Group: "zookeeper/a", Member: "a"},
				{Group: long, Member: "a"},
			},
			"member": {
				{Group: "g"}, {Group: "g", Member: "a/b"}, {Group: "g", Member: long}, {Group: "g", Member: ".."}, {Group: "g", Member: "é"},
			},
			"owner":       {{Group: "g", Member: "a", Owner: strings.Repeat("x", 129)}, {Group: "g", Member: "a", Owner: "a\n"}},
			"metadata":    {{Group: "g", Member: "a", Metadata: map[string]string{"a": strings.Repeat("x", 1024)}}},
			"lease_id":    {{Group: "g", Member: "a", LeaseId: "secret"}},
			"on_conflict": {{Group: "g", Member: "a", OnConflict: 4}, {Group: "g", Member: "a", OnConflict: -1}},
			"wait_timeout": {
				{Group: "g", Member: "a", WaitTimeout: lasting(0)},
				{Group: "g", Member: "a", OnConflict: waits, WaitTimeout: lasting(-1)},
				{Group: "g", Member: "a", OnConflict: replaces, WaitTimeout: lasting(87601 * time.Hour)},
			},
		}
		for field, requests := range joins {
			for _, request := range requests {
				stream, err := s.groups.Join(s.context(), request)
				s.must(err)
				_, err = stream.Recv()
				same(t, request.String(), outcome(err), "InvalidArgument INVALID_FIELD "+field)
			}
		}
		refused := func(field string, err error) {
			t.Helper()
			same(t, "outcome", outcome(err), "InvalidArgument INVALID_FIELD "+field)
		}
		_, err := s.groups.Update(s.context(), &membershipv1.UpdateRequest{Group: "g/", Member: "a"})
		refused("group", err)
		_, err = s.groups.Update(s.context(), &membershipv1.UpdateRequest{Group: "g", Member: "a/b"})
		refused("member", err)
		_, err = s.groups.Update(s.context(), &membershipv1.UpdateRequest{Group: "g", Member: "a", LeaseId: "x"})
		refused("lease_id", err)
		_, err = s.groups.Update(s.context(), &membershipv1.UpdateRequest{
			Group: "g", Member: "a", Metadata: map[string]string{strings.Repeat("x", 1025): ""},
		})
		refused("metadata", err)
		_, err = s.groups.Get(s.context(), &membershipv1.GetRequest{})
		refused("group", err)
		_, err = s.groups.Create(s.context(), &membershipv1.CreateRequest{Group: "a b"})
		refused("group", err)
		for field, request := range map[string]*membershipv1.DeleteRequest{
			"group":       {Group: "", Force: true},
			"reason":      {Group: "g", Reason: "without force"},
			"force_after": {Group: "g", ForceAfter: lasting(time.Second)},
		} {
			_, err = s.operators.groups.Delete(s.context(), request)
			refused(field, err)
		}
		for field, request := range map[string]*membershipv1.DeleteRequest{
			"reason":      {Group: "g", Force: true, Reason: strings.Repeat("x", 257)},
			"force_after": {Group: "g", Force: true, Reason: "moved", ForceAfter: lasting(25 * time.Hour)},
		} {
			_, err = s.operators.groups.Delete(s.context(), request)
			refused(field, err)
		}
		for field, request := range map[string]*membershipv1.ListRequest{
			"prefix": {Prefix: "/"}, "page_size": {PageSize: 1001}, "page_token": {PageToken: "x"},
		} {
			_, err = s.groups.List(s.context(), request)
			refused(field, err)
		}
		s.watchGroup(s.callers, "/").sees("InvalidArgument INVALID_FIELD group")
		same(t, "groups", slices.Sorted(slices.Values(s.ensemble.memory.Names("/sidekeeper/groups"))), []string{})
	})
}

func TestMetadataThatIsTooLongAsJSONIsRefused(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		long := map[string]string{}
		for i := range 512 {
			long[string([]byte{byte(1 + i/30), byte(1 + i%30)})] = ""
		}
		s.join(s.callers, &membershipv1.JoinRequest{Member: "a", Metadata: long}).sees("InvalidArgument INVALID_FIELD metadata")
		s.joined(s.callers, "a")
		_, err := s.groups.Update(s.context(), &membershipv1.UpdateRequest{Group: "shop", Member: "a", Metadata: long})
		same(t, "Update", outcome(err), "InvalidArgument INVALID_FIELD metadata")
	})
}
