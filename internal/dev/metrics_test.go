package dev

import (
	"crypto/tls"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	devv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/dev/v1"
	errorsv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/errors/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

// A family is one metric: its type, and the values of each of its labels.
type family struct {
	Type   string
	Labels map[string][]string
}

func TestMetricsAreAsTheirDocumentSays(t *testing.T) {
	s := serve(t, Options{MetricsListen: "127.0.0.1:0", Metrics: withCertificates(t)})
	chosen := everythingHappens(t, s)
	text := scraped(t, s.MetricsAddress())
	shown, documented := scrapedFamilies(t, text), documentedFamilies(t)

	for name, family := range documented {
		seen, there := shown[name]
		if !there {
			t.Errorf("%s is documented and not shown", name)
			continue
		}
		if strings.HasPrefix(name, "grpc_") || strings.HasSuffix(name, "_info") { // whose values are methods, codes and builds
			family, seen = withoutValues(family), withoutValues(seen)
		}
		if diff := cmp.Diff(family, seen); diff != "" {
			t.Errorf("%s (-docs/metrics.md +/metrics):\n%s", name, diff)
		}
	}
	for name := range shown {
		_, found := documented[name]
		if !found && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s is shown and not documented", name)
		}
	}
	for _, word := range chosen {
		if strings.Contains(text, word) {
			t.Errorf("what a caller chose stands in the metrics: %q", word)
		}
	}
}

// withCertificates are the metrics of a sidecar that has a certificate for each side. The one for development needs none.
func withCertificates(t *testing.T) *server.Metrics {
	t.Helper()
	metrics, folder := server.NewMetrics(), t.TempDir()
	_, err := makeCertificates(folder)
	must(t, err)
	parse := func(contents [][]byte) (*tls.Config, error) {
		own, err := tls.X509KeyPair(contents[0], contents[1])
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}, err
	}
	for _, side := range []string{"callers", "ensemble"} {
		_, err := metrics.KeepCertificate(side, "--flag", zap.NewNop(), parse, nil, folder+"/client.pem", folder+"/client-key.pem")
		must(t, err)
	}
	return metrics
}

// everythingHappens uses every service, loses a lock, and calls what does not exist. It returns what callers chose and were
// given: names, owners and ids.
func everythingHappens(t *testing.T, s *scene) []string {
	t.Helper()
	connection, err := grpc.NewClient(s.Addresses()[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })

	lease, err := leasev1.NewLeaseServiceClient(connection).Open(s.context(), &leasev1.OpenRequest{Owner: "chosen-owner"})
	must(t, err)
	opened, err := lease.Recv()
	must(t, err)
	id := opened.GetOpened().GetLeaseId()

	first := s.acquire("chosen-lock")
	first.sees("granted")
	second := s.acquire("chosen-lock")
	second.sees("queued")
	_, err = s.dev.ExpireLease(s.context(), &devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_Lock{Lock: "chosen-lock"}})
	must(t, err)
	first.sees("Aborted LEASE_LOST")
	second.sees("granted")
	_, err = s.locks.Acquire(s.context(), &lockv1.AcquireRequest{Name: "chosen-lock", WaitTimeout: durationpb.New(0)})
	must(t, err)

	member, err := membershipv1.NewMembershipServiceClient(connection).
		Join(s.context(), &membershipv1.JoinRequest{Group: "chosen-group", Member: "chosen-member", LeaseId: id})
	must(t, err)
	_, err = member.Recv()
	must(t, err)
	sequences := sequencev1.NewSequenceServiceClient(connection)
	_, err = sequences.Create(s.context(), &sequencev1.CreateRequest{Name: "chosen-sequence"})
	must(t, err)
	_, err = sequences.Next(s.context(), &sequencev1.NextRequest{Name: "chosen-sequence"})
	must(t, err)
	keys := configv1.NewConfigServiceClient(connection)
	_, err = keys.Put(s.context(), &configv1.PutRequest{Key: "chosen-key", Content: &configv1.PutRequest_Text{Text: "chosen-value"}})
	must(t, err)
	watch, err := keys.Watch(s.context(), &configv1.WatchRequest{Prefix: "chosen-key"})
	must(t, err)
	_, err = watch.Recv()
	must(t, err)
	sets := assignmentv1.NewAssignmentServiceClient(connection)
	_, err = sets.Define(s.context(), &assignmentv1.DefineRequest{Set: "chosen-set", Items: []string{"chosen-item"}})
	must(t, err)
	share, err := sets.Join(s.context(), &assignmentv1.JoinRequest{Set: "chosen-set", Member: "chosen-worker"})
	must(t, err)
	for assigned := false; !assigned; {
		event, err := share.Recv()
		must(t, err)
		assigned = len(event.GetAssigned().GetItems()) == 1
	}
	if err := connection.Invoke(s.context(), "/chosen.Service/ChosenMethod", &lockv1.GetRequest{}, &lockv1.GetResponse{}); err == nil {
		t.Error("a method that does not exist answers")
	}
	return []string{"hosen", id}
}

func scraped(t *testing.T, address string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	response, err := client.Get("http://" + address + "/metrics")
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return string(body)
}

var (
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`)
	sampleLine = regexp.MustCompile(`(?m)^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	labelPair  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

func scrapedFamilies(t *testing.T, text string) map[string]family {
	t.Helper()
	families := map[string]family{}
	for _, line := range typeLine.FindAllStringSubmatch(text, -1) {
		families[line[1]] = family{Type: line[2], Labels: map[string][]string{}}
	}
	for _, line := range sampleLine.FindAllStringSubmatch(text, -1) {
		of, known := families[line[1]]
		if !known {
			t.Fatalf("a sample of no metric: %s", line[0])
		}
		for _, pair := range labelPair.FindAllStringSubmatch(line[2], -1) {
			if pair[1] != "le" && !slices.Contains(of.Labels[pair[1]], pair[2]) {
				of.Labels[pair[1]] = append(of.Labels[pair[1]], pair[2])
			}
		}
	}
	for _, of := range families {
		for _, values := range of.Labels {
			slices.Sort(values)
		}
	}
	return families
}

var (
	documentRow   = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| [^|]+ \\|([^|]*)\\|[^|]+\\|[^|]+\\|$")
	documentWord  = regexp.MustCompile("`(\\w+)`")
	everyReason   = "every reason of "
	withoutReason = "REASON_UNSPECIFIED"
)

func documentedFamilies(t *testing.T) map[string]family {
	t.Helper()
	document, err := os.ReadFile("../../docs/metrics.md")
	must(t, err)
	families := map[string]family{}
	for _, row := range documentRow.FindAllStringSubmatch(string(document), -1) {
		families[row[1]] = family{Type: row[2], Labels: documentedLabels(row[3])}
	}
	if rows := strings.Count(string(document), "\n| `"); rows != len(families) {
		t.Fatalf("%d metrics can be read in %d rows", len(families), rows)
	}
	return families
}

// documentedLabels reads `label`: `value`, `value`; `label`: `value`, or labels without values.
func documentedLabels(text string) map[string][]string {
	labels := map[string][]string{}
	for part := range strings.SplitSeq(text, ";") {
		maps.Copy(labels, documentedValues(part))
	}
	return labels
}

func documentedValues(text string) map[string][]string {
	labels := map[string][]string{}
	names, values, valued := strings.Cut(text, ":")
	for _, name := range documentWord.FindAllStringSubmatch(names, -1) {
		labels[name[1]] = nil
		for _, value := range documentWord.FindAllStringSubmatch(values, -1) {
			labels[name[1]] = append(labels[name[1]], value[1])
		}
		if valued && strings.Contains(values, everyReason) {
			labels[name[1]] = allReasons()
		}
	}
	return labels
}

func allReasons() []string {
	var reasons []string
	for _, reason := range errorsv1.Reason_name {
		if reason != withoutReason {
			reasons = append(reasons, strings.TrimPrefix(reason, "REASON_"))
		}
	}
	slices.Sort(reasons)
	return reasons
}

func withoutValues(of family) family {
	names := map[string][]string{}
	for name := range maps.Keys(of.Labels) {
		names[name] = nil
	}
	return family{of.Type, names}
}
