// It looks inside: the table of errors has reasons that no caller can bring about in a test.

package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	errorsv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/errors/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// A failing server answers every call with one error.
type failing struct {
	err    error
	client lockv1.LockServiceClient
}

// tell answers with what the table says.
func tell(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	_, err := handler(ctx, request)
	told, reason := StatusOf(err)
	_ = grpc.SetTrailer(ctx, metadata.Pairs("reason", reason))
	return nil, told.Err()
}

func newFailing(t *testing.T) *failing {
	f := &failing{}
	fail := func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) { return nil, f.err }
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(tell, fail))
	lockv1.RegisterLockServiceServer(server, &lockService{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = connection.Close()
		server.Stop()
		<-served
	})
	f.client = lockv1.NewLockServiceClient(connection)
	return f
}

// fail has the server fail with err and returns what arrives.
func (f *failing) fail(t *testing.T, err error) (*status.Status, metadata.MD) {
	f.err = err
	var trailer metadata.MD
	_, seen := f.client.Get(t.Context(), &lockv1.GetRequest{}, grpc.Trailer(&trailer))
	return status.Convert(seen), trailer
}

func TestEveryErrorReachesTheCallerInAllItsForms(t *testing.T) {
	t.Parallel()
	f := newFailing(t)
	for _, known := range answers {
		seen, trailer := f.fail(t, fmt.Errorf("/secret/path: %w", known.err))
		reason := reasonText(known.reason)
		same(t, "code of "+reason, seen.Code(), known.code)
		if strings.Contains(seen.Message(), "secret") {
			t.Errorf("%s tells more than it should: %s", reason, seen.Message())
		}
		_, retries := expect.Detail[*errdetails.RetryInfo](seen)
		same(t, "RetryInfo with "+reason, retries, known.code == codes.Unavailable)
		if reason == "" {
			same(t, "details", len(seen.Details()), 0)
			continue
		}
		info, _ := expect.Detail[*errdetails.ErrorInfo](seen)
		same(t, "ErrorInfo", info.GetDomain()+" "+info.GetReason(), "sidekeeper "+reason)
		same(t, "trailer", trailer.Get("reason"), []string{reason})
		same(t, "message", strings.HasPrefix(seen.Message(), reason+": "), true)
	}
}

func TestEveryReasonHasAnErrorExceptThatOfClients(t *testing.T) {
	t.Parallel()
	for number := range errorsv1.Reason_name {
		reason := errorsv1.Reason(number)
		sent := slices.ContainsFunc(append(answers, unnamed), func(a answer) bool { return a.reason == reason })
		if sent == (reason == errorsv1.Reason_REASON_RELEASE_UNCONFIRMED) {
			t.Errorf("the sidecar sends %s: %v", reason, sent)
		}
	}
}

func TestAnErrorWithoutANameLeavesInTwoWords(t *testing.T) {
	t.Parallel()
	seen, trailer := newFailing(t).fail(t, errors.New("the password is 12345"))
	same(t, "status", seen.Code().String()+" "+seen.Message(), "Internal INTERNAL: internal error")
	same(t, "trailer", trailer.Get("reason"), []string{"INTERNAL"})
}

func TestAnInvalidFieldNamesFieldValueAndRule(t *testing.T) {
	t.Parallel()
	seen, _ := newFailing(t).fail(t, invalid("name", strings.Repeat("x", 100)+"\n", "short"))
	request, _ := expect.Detail[*errdetails.BadRequest](seen)
	violation := request.GetFieldViolations()[0]
	same(t, "violation", violation.GetField()+": "+violation.GetDescription(), "name: short")
	same(t, "message", seen.Message(),
		`INVALID_FIELD: invalid field: name is "`+strings.Repeat("x", 64)+`"…: short`)
}

func TestALimitSaysWhichAndHowMuch(t *testing.T) {
	t.Parallel()
	seen, _ := newFailing(t).fail(t, limited(errLeaseLimit, "max-leases", 7))
	info, _ := expect.Detail[*errdetails.ErrorInfo](seen)
	same(t, "metadata", info.GetMetadata(), map[string]string{"limit": "max-leases", "max": "7"})
}

func TestADirectoryThatIsTooLargeIsNamedWithItsSizeAndWhatToDo(t *testing.T) {
	t.Parallel()
	told, reason := StatusOf(fmt.Errorf("listing: %w", &recipes.LargeDirectory{Path: "/sidekeeper/sequences", Bytes: 5000000, Max: 4194304}))
	same(t, "reason", reason, "DIRECTORY_TOO_LARGE")
	same(t, "message", told.Message(), "DIRECTORY_TOO_LARGE: too many names in one directory: "+
		"the list of /sidekeeper/sequences takes 5000000 bytes, and at most 4194304 are read. "+
		"Delete names that are not needed, and spread new ones over several prefixes")
	facts := told.Details()[0].(*errdetails.ErrorInfo).GetMetadata()
	same(t, "facts", fmt.Sprint(facts), "map[bytes:5000000 directory:/sidekeeper/sequences max:4194304]")
	full := &recipes.FullDirectory{Path: "/sidekeeper/groups", Limit: "max-children", Used: 50001, Max: 50000}
	told, reason = StatusOf(fmt.Errorf("create: %w", full))
	same(t, "reason", reason, "DIRECTORY_TOO_LARGE")
	same(t, "message", told.Message(), "DIRECTORY_TOO_LARGE: too many names in one directory: "+
		"max-children of /sidekeeper/groups: 50001, and at most 50000: delete names that are not needed, and spread new ones over several prefixes")
	facts = told.Details()[0].(*errdetails.ErrorInfo).GetMetadata()
	same(t, "facts", fmt.Sprint(facts), "map[directory:/sidekeeper/groups limit:max-children max:50000 used:50001]")
}

func TestAQuotaOfTheEnsembleIsNamedWithItsLimitAndWhose(t *testing.T) {
	t.Parallel()
	exceeded := &recipes.QuotaExceeded{Path: "/sidekeeper/config/billing", Limit: "bytes", Used: 990, Wanted: 20, Max: 1000}
	told, reason := StatusOf(&recipes.Refusal{Err: exceeded})
	same(t, "reason", told.Code().String()+" "+reason, "ResourceExhausted QUOTA_EXCEEDED")
	same(t, "message", told.Message(), "QUOTA_EXCEEDED: quota exceeded: bytes at and below /sidekeeper/config/billing: "+
		"990 are used, 20 more are wanted, and at most 1000 are allowed. Delete what is not needed, or have the quota raised")
	facts := told.Details()[0].(*errdetails.ErrorInfo).GetMetadata()
	same(t, "facts", fmt.Sprint(facts), "map[limit:bytes max:1000 path:/sidekeeper/config/billing used:990]")
}
