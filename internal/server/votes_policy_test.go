package server_test

import (
	"testing"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
)

// A caller votes as a participant of its own name alone, where the policy says so.
func TestAVoteIsCastByItsParticipant(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, `rules:
- {identities: ["socket:app", "socket:web"], methods: ["sidekeeper.agreement.v1.AgreementService/*"], prefixes: ["*"], members: ["{identity}"]}`)
	vote := func(identity, participant string) string {
		agreements := agreementv1.NewAgreementServiceClient(s.callers[identity])
		stream, err := agreements.Vote(within(t), &agreementv1.VoteRequest{Name: "orders", Agreement: "1", Participant: participant})
		must(t, err)
		_, err = stream.Recv()
		return outcome(err)
	}
	same(t, "as another", vote("socket:app", "web"), "PermissionDenied POLICY_DENIED")
	if own := vote("socket:app", "app"); own == "PermissionDenied POLICY_DENIED" {
		t.Errorf("as itself: %s", own)
	}
}
