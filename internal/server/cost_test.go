// It looks inside: it measures what stands in front of a handler, without the network.

package server

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
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
			benchmarkAdmission(b, admission{limits: &caller.Limits{}, authorizer: admits, denials: denials{zap.NewNop()}})
		})
	}
}

func benchmarkAdmission(b *testing.B, admits admission) {
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
