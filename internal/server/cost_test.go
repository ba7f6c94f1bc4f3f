// It looks inside: what a call costs shows in no answer.

package server

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// BenchmarkCallCost is what each call pays for what stands in front of its handler, without the network: its number, and the admission
// without a policy, and with one of twenty rules, of which the last allows. BenchmarkCost of cmd/sidekeeper has whole calls.
func BenchmarkCallCost(b *testing.B) {
	for _, way := range []struct {
		name    string
		handler caller.StatsHandler
	}{
		{"without a number", caller.StatsHandler{}},
		{"with a number", caller.StatsHandler{Calls: new(atomic.Uint64)}},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = way.handler.TagRPC(b.Context(), nil)
			}
		})
	}
	var rules strings.Builder
	rules.WriteString("rules:\n")
	for i := range 20 {
		fmt.Fprintf(&rules, "  - {identities: [\"*\"], methods: [sidekeeper.config.v1.ConfigService/*], prefixes: [team-%d]}\n", i+1)
	}
	path := b.TempDir() + "/policy.yaml"
	if err := os.WriteFile(path, []byte(rules.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	twenty, err := openPolicy(path, zap.NewNop(), zap.NewNop(), func(bool) {}, func() {})
	if err != nil {
		b.Fatal(err)
	}
	for _, way := range []struct {
		name string
		file *policyFile
	}{{"without a policy", nil}, {"with twenty rules", twenty}} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			admits := authorizer{way.file, &openStreams{}}
			benchmarkAdmission(b, &admissions{authorizer: admits, denials: denials{zap.NewNop()}, metrics: NewMetrics(), log: callLog{zap.NewNop()}})
		})
	}
}

func benchmarkAdmission(b *testing.B, admits *admissions) {
	b.Helper()
	ctx := caller.StatsHandler{Calls: new(atomic.Uint64)}.TagRPC(b.Context(), nil)
	ctx = peer.NewContext(ctx, &peer.Peer{AuthInfo: caller.Caller{Identity: "uid:1000"}})
	request, info := &configv1.GetRequest{Key: "team-20/key"}, &grpc.UnaryServerInfo{FullMethod: configv1.ConfigService_Get_FullMethodName}
	handler := func(context.Context, any) (any, error) { return nil, nil }
	for b.Loop() {
		if _, err := admits.unary(ctx, request, info, handler); err != nil {
			b.Fatal(err)
		}
	}
}

func TestOnlyWhatWritesHasACost(t *testing.T) {
	t.Parallel()
	put := &configv1.Operation{Operation: &configv1.Operation_Put{Put: &configv1.PutRequest{Key: "a"}}}
	for _, c := range []struct {
		method  string
		request any
		want    string
	}{
		{leasev1.LeaseService_Open_FullMethodName, &leasev1.OpenRequest{}, "[1 0 0]"},
		{leasev1.LeaseService_Close_FullMethodName, &leasev1.CloseRequest{}, "[0 0 0]"},
		{lockv1.LockService_Acquire_FullMethodName, &lockv1.AcquireRequest{Name: "orders"}, "[1 1 8]"},
		{lockv1.LockService_Acquire_FullMethodName, &lockv1.AcquireRequest{Name: "orders", LeaseId: "x"}, "[0 1 11]"},
		{lockv1.LockService_Release_FullMethodName, &lockv1.ReleaseRequest{}, "[0 0 0]"},
		{lockv1.LockService_Get_FullMethodName, &lockv1.GetRequest{Name: "orders"}, "[0 0 0]"},
		{membershipv1.MembershipService_Join_FullMethodName, &membershipv1.JoinRequest{Group: "shop"}, "[1 1 6]"},
		{membershipv1.MembershipService_Update_FullMethodName, &membershipv1.UpdateRequest{Group: "shop"}, "[0 1 6]"},
		{sequencev1.SequenceService_Next_FullMethodName, &sequencev1.NextRequest{Name: "a"}, "[0 1 3]"},
		{
			sequencev1.SequenceService_Next_FullMethodName,
			&sequencev1.NextRequest{Name: "a", Ordering: sequencev1.Ordering_ORDERING_RELAXED}, "[0 0 0]",
		},
		{configv1.ConfigService_Put_FullMethodName, &configv1.PutRequest{Key: "a"}, "[0 1 3]"},
		{configv1.ConfigService_Commit_FullMethodName, &configv1.CommitRequest{Operations: []*configv1.Operation{put, put}}, "[0 2 14]"},
		{configv1.ConfigService_Watch_FullMethodName, &configv1.WatchRequest{Keys: []string{"a"}}, "[0 0 0]"},
	} {
		same(t, c.method, fmt.Sprint(costOf(c.method, c.request)), c.want)
	}
}

func TestAQuotaOfTheEnsembleCountsAsNoLimitOfACaller(t *testing.T) {
	t.Parallel()
	metrics := NewMetrics()
	for _, facts := range []map[string]string{{"limit": "bytes", "path": "/a"}, {"limit": "leases", "caller": "uid:1"}} {
		answer, err := status.New(codes.ResourceExhausted, "").WithDetails(&errdetails.ErrorInfo{Reason: quotaExceeded, Metadata: facts})
		must(t, err)
		metrics.refused(answer, quotaExceeded)
	}
	text := expect.Scrape(metrics.Handler())
	same(t, "of the ensemble", strings.Contains(text, `quota_refusals_total{limit="bytes"}`), false)
	same(t, "of a caller", strings.Contains(text, `quota_refusals_total{limit="leases"} 1`), true)
}

// A stream that lives long keeps the first names that it asked for, and not the request.
func TestAStreamKeepsNamesNotRequests(t *testing.T) {
	t.Parallel()
	freed := make(chan struct{})
	attempted := func() attempt {
		request := &lockv1.AcquireRequest{Name: strings.Repeat("x", 1<<20)}
		runtime.AddCleanup(request, func(freed chan struct{}) { close(freed) }, freed)
		return attemptOf(lockv1.LockService_Acquire_FullMethodName, request, []string{request.GetName()})
	}
	made := attempted()
	runtime.GC()
	<-freed
	same(t, "action", made.action, "sidekeeper.lock.v1.LockService/Acquire")
	same(t, "bytes", len(made.names[0]), longestDeniedName)
}
