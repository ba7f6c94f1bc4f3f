package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// callsInARound is how many calls through each sidecar a round's medians are of.
const callsInARound = 100

// BenchmarkCost makes the same calls through sidecars that differ in one setting, in turns: the audit log, a policy of twenty rules, of
// which the last allows, and traces of every call. The first is the measure, and the second is the same again, which shows what chance does.
func BenchmarkCost(b *testing.B) {
	_, ensemble := memoryEnsemble(b)
	folder := b.TempDir()
	if err := os.WriteFile(folder+"/rules", []byte(twentyRules()), 0o600); err != nil {
		b.Fatal(err)
	}
	var all []*costed
	for _, way := range []struct{ name, flag string }{
		{"none", "--audit-log=off"},
		{"again", "--audit-log=off"},
		{"file", "--audit-log=" + folder + "/audit"},
		{"stderr", "--audit-log=stderr"},
		{"policy", "--policy=" + folder + "/rules"},
		{"traces", "--otlp-endpoint=" + newCollector(b).endpoint},
	} {
		flags := []string{"--audit-log=off", "--zookeeper=" + ensemble, way.flag}
		all = append(all, startCosted(b, way.name, folder, flags))
	}
	b.Run("lock and release", func(b *testing.B) { inTurns(b, all, (*costed).pair) })
	b.Run("number", func(b *testing.B) { inTurns(b, all, (*costed).number) })
	b.Run("relaxed number", func(b *testing.B) { inTurns(b, all, (*costed).relaxed) })
	b.Run("key", func(b *testing.B) { inTurns(b, all, (*costed).key) })
}

// twentyRules is a policy in which all rules are about all callers and methods, and each about names of its own.
func twentyRules() string {
	var rules strings.Builder
	rules.WriteString("rules:\n")
	for i := range 20 {
		fmt.Fprintf(&rules, "  - {identities: [\"*\"], methods: [sidekeeper.lock.v1.LockService/*, sidekeeper.lease.v1.LeaseService/*, "+
			"sidekeeper.sequence.v1.SequenceService/*, sidekeeper.config.v1.ConfigService/*], prefixes: [cost-%d]}\n", i+1)
	}
	return rules.String()
}

// A costed is a sidecar whose calls are measured, and a caller with a lease.
type costed struct {
	name      string
	lease     string
	locks     lockv1.LockServiceClient
	sequences sequencev1.SequenceServiceClient
	config    configv1.ConfigServiceClient
}

// underCost is a name that only the last rule covers.
const underCost = "cost-20/"

func startCosted(b *testing.B, name, folder string, flags []string) *costed {
	b.Helper()
	address := "unix://" + filepath.Join(folder, name+".socket")
	command := exec.Command(os.Args[0], append([]string{"serve", "--listen=" + address, "--operator-listen="}, flags...)...)
	command.Env = append(os.Environ(), role+"=sidekeeper")
	log, err := os.Create(filepath.Join(folder, name+".log"))
	mustCost(b, err)
	defer log.Close()
	command.Stderr = log
	out, err := command.StdoutPipe()
	mustCost(b, err)
	mustCost(b, command.Start())
	b.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	if _, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		said, _ := os.ReadFile(log.Name())
		b.Fatalf("%v: %s", err, said)
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	mustCost(b, err)
	b.Cleanup(func() { _ = connection.Close() })
	c := &costed{
		name: name, locks: lockv1.NewLockServiceClient(connection), sequences: sequencev1.NewSequenceServiceClient(connection),
		config: configv1.NewConfigServiceClient(connection),
	}
	c.prepare(b, connection)
	return c
}

// prepare opens a lease, and makes what the calls are about.
func (c *costed) prepare(b *testing.B, connection *grpc.ClientConn) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	stream, err := leasev1.NewLeaseServiceClient(connection).Open(ctx, &leasev1.OpenRequest{}, grpc.WaitForReady(true))
	mustCost(b, err)
	opened, err := stream.Recv()
	mustCost(b, err)
	c.lease = opened.GetOpened().GetLeaseId()
	_, err = c.sequences.Create(ctx, &sequencev1.CreateRequest{Name: underCost + c.name})
	mustCost(b, err)
	_, err = c.config.Put(ctx, &configv1.PutRequest{Key: underCost + c.name, Content: &configv1.PutRequest_Text{Text: "250"}})
	mustCost(b, err)
}

func (c *costed) pair(ctx context.Context) error {
	stream, err := c.locks.Acquire(ctx, &lockv1.AcquireRequest{Name: underCost + c.name, LeaseId: c.lease})
	if err != nil {
		return err
	}
	event, err := stream.Recv()
	if err != nil {
		return err
	}
	_, err = c.locks.Release(ctx, &lockv1.ReleaseRequest{HoldId: event.GetGranted().GetHoldId()})
	for err == nil {
		if _, err := stream.Recv(); err != nil {
			return nil //nolint:nilerr // the end
		}
	}
	return err
}

func (c *costed) number(ctx context.Context) error {
	_, err := c.sequences.Next(ctx, &sequencev1.NextRequest{Name: underCost + c.name})
	return err
}

func (c *costed) relaxed(ctx context.Context) error {
	_, err := c.sequences.Next(ctx, &sequencev1.NextRequest{
		Name: underCost + c.name, Ordering: sequencev1.Ordering_ORDERING_RELAXED,
	})
	return err
}

func (c *costed) key(ctx context.Context) error {
	_, err := c.config.Get(ctx, &configv1.GetRequest{Key: underCost + c.name})
	return err
}

// inTurns reports the median of the first, in microseconds, and for each other the median of the rounds' ratios to it with the
// first and the third quartile.
func inTurns(b *testing.B, all []*costed, call func(*costed, context.Context) error) {
	b.Helper()
	var first []float64
	ratios := make([][]float64, len(all))
	for b.Loop() {
		medians := aRound(b, all, call)
		first = append(first, medians[0])
		for i := range all {
			ratios[i] = append(ratios[i], medians[i]/medians[0])
		}
	}
	b.ReportMetric(quartile(first, 2), all[0].name+"-µs")
	for i, each := range all[1:] {
		b.ReportMetric(quartile(ratios[i+1], 2), each.name+"-ratio")
		b.ReportMetric(quartile(ratios[i+1], 1), each.name+"-low")
		b.ReportMetric(quartile(ratios[i+1], 3), each.name+"-high")
	}
}

// aRound is the medians of the microseconds that a call takes through each. They take turns call by call, and it is another's turn to
// begin each time.
func aRound(b *testing.B, all []*costed, call func(*costed, context.Context) error) []float64 {
	b.Helper()
	took, medians := make([][]float64, len(all)), make([]float64, len(all))
	for began := range callsInARound {
		for turn := range all {
			i := (began + turn) % len(all)
			sent := time.Now()
			mustCost(b, call(all[i], b.Context()))
			took[i] = append(took[i], float64(time.Since(sent))/float64(time.Microsecond))
		}
	}
	for i := range all {
		medians[i] = quartile(took[i], 2)
	}
	return medians
}

// quartile is the first, the second, which is the median, or the third.
func quartile(values []float64, which int) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)*which/4, len(sorted)-1)]
}

func mustCost(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
