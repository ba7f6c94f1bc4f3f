package main

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
)

// keptAgreements answers Get.
type keptAgreements struct {
	agreementv1.AgreementServiceClient

	all []*agreementv1.Agreement
}

func (k keptAgreements) Get(context.Context, *agreementv1.GetRequest, ...grpc.CallOption) (*agreementv1.GetResponse, error) {
	return &agreementv1.GetResponse{Agreements: k.all}, nil
}

// Whoever may write to the ensemble can name participants as they like.
func TestAgreeLsShowsNothingThatATerminalTakesForCommands(t *testing.T) {
	t.Parallel()
	kept := keptAgreements{all: []*agreementv1.Agreement{
		{Agreement: "A", Participants: []string{"a", "\x1b[2J"}, Voted: []string{"\x1b[2J"}},
		{Agreement: "B", Participants: []string{"a"}, Decision: agreementv1.Decision_DECISION_ABORT},
	}}
	var shown strings.Builder
	if err := (&reach{}).agreeList(t.Context(), kept, []string{"transfers"}, &shown); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"AGREEMENT  DECISION  PARTICIPANTS  VOTED\n" +
		"A          -         \"a,\\x1b[2J\"   \"\\x1b[2J\"\n" +
		"B          ABORT     a             -\n"
	if shown.String() != want {
		t.Errorf("shown: %q, want %q", shown.String(), want)
	}
}
