package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// A recorded is one line of the record.
type recorded map[string]any

// entriesOf are the lines of one event.
func (s *policyScene) entriesOf(event string) (entries []recorded) {
	scanner := bufio.NewScanner(strings.NewReader(s.record.Text()))
	for scanner.Scan() {
		var line recorded
		must(s.t, json.Unmarshal(scanner.Bytes(), &line))
		if line["msg"] == event {
			for _, always := range []string{"msg", "ts", "level", "login"} {
				delete(line, always)
			}
			entries = append(entries, line)
		}
	}
	return entries
}

// awaitEntry returns the first line of an event that is so.
func (s *policyScene) awaitEntry(event string, isSo func(recorded) bool) recorded {
	s.t.Helper()
	var found recorded
	awaitThat(s.t, event, func() bool {
		for _, line := range s.entriesOf(event) {
			if isSo(line) {
				found = line
				return true
			}
		}
		return false
	})
	return found
}

var documentedEvent = regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| .* \\| (`.*`) \\|$")

// documentedEvents are the fields of each event, as docs/audit.md tells them.
func documentedEvents(t *testing.T) map[string][]string {
	t.Helper()
	document, err := os.ReadFile("../../docs/audit.md")
	must(t, err)
	events := map[string][]string{}
	for _, row := range documentedEvent.FindAllStringSubmatch(string(document), -1) {
		for field := range strings.SplitSeq(row[2], ", ") {
			events[row[1]] = append(events[row[1]], strings.Trim(field, "`"))
		}
		slices.Sort(events[row[1]])
	}
	return events
}

// What an auditor asks: who had it, under which token, who took it away, who tried.
func TestTheRecordTellsWhatItsDocumentSays(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, `
rules:
- identities: ["socket:app"]
  methods: ["sidekeeper.lock.v1.LockService/*", "sidekeeper.lease.v1.LeaseService/*"]
  prefixes: [orders]
`)
	app, operator := lockv1.NewLockServiceClient(s.callers["socket:app"]), lockv1.NewLockServiceClient(s.callers["operator"])
	hold := func(name string) *lockv1.Granted {
		stream, err := app.Acquire(within(t), &lockv1.AcquireRequest{Name: name})
		must(t, err)
		event, err := stream.Recv()
		must(t, err)
		return event.GetGranted()
	}
	released, broken := hold("orders/1"), hold("orders/2")
	guards := []*holdv1.Guard{{Hold: &holdv1.Guard_Ticket{
		Ticket: &holdv1.Ticket{Lock: "orders/3", FencingToken: hold("orders/3").GetFencingToken()},
	}}}
	_, err := app.Release(within(t), &lockv1.ReleaseRequest{HoldId: released.GetHoldId()})
	must(t, err)
	_, err = operator.Revoke(within(t), &lockv1.RevokeRequest{Name: "orders/2", Reason: "please", Grace: durationpb.New(time.Hour)})
	must(t, err)
	_, err = operator.Break(within(t), &lockv1.BreakRequest{Name: "orders/2", FencingToken: broken.GetFencingToken(), Reason: "stuck"})
	must(t, err)
	_, _ = sequencev1.NewSequenceServiceClient(s.callers["operator"]).AdvanceTo(within(t),
		&sequencev1.AdvanceToRequest{Name: "none", LastIssued: proto.Int64(7), Guards: guards})
	_, _ = membershipv1.NewMembershipServiceClient(s.callers["operator"]).Delete(within(t),
		&membershipv1.DeleteRequest{Group: "web", Force: true, Reason: "gone"})
	_, _ = configv1.NewConfigServiceClient(s.callers["operator"]).Delete(within(t), &configv1.DeleteRequest{Key: "shop", Recursive: true})
	written := configv1.NewConfigServiceClient(s.callers["operator"])
	_, err = written.Put(within(t), &configv1.PutRequest{
		Key: "prices/tea", Content: &configv1.PutRequest_Text{Text: "a secret"}, Guards: guards,
	})
	must(t, err)
	joining, leave := context.WithCancel(within(t))
	groups := membershipv1.NewMembershipServiceClient(s.callers["operator"])
	join, err := groups.Join(joining, &membershipv1.JoinRequest{Group: "web", Member: "one", Guards: guards})
	must(t, err)
	_, err = join.Recv()
	must(t, err)
	leave()
	_, err = app.Get(within(t), &lockv1.GetRequest{Name: "stock"})
	same(t, "Get", outcome(err), denied)

	me := "uid:" + uid()
	for _, want := range []struct {
		event string
		line  recorded
	}{
		{"grant", recorded{"caller": "socket:app", "name": "orders/1", "fencing_token": float64(released.GetFencingToken())}},
		{"release", recorded{"caller": "socket:app", "name": "orders/1", "fencing_token": float64(released.GetFencingToken())}},
		{"loss", recorded{"caller": "socket:app", "name": "orders/2", "fencing_token": float64(broken.GetFencingToken()), "reason": "LOCK_BROKEN"}},
		{"revocation", recorded{"caller": me, "name": "orders/2", "why": "please", "reached": 1.0, "outcome": "OK"}},
		{"break", recorded{
			"caller": me, "name": "orders/2", "fencing_token": float64(broken.GetFencingToken()), "why": "stuck", "forced": false, "outcome": "OK",
		}},
		{"advance", recorded{"caller": me, "name": "none", "last_issued": 7.0, "outcome": "SEQUENCE_NOT_FOUND"}},
		{"removal", recorded{"caller": me, "kind": "group", "name": "web", "why": "gone", "outcome": "GROUP_NOT_FOUND"}},
		{"removal", recorded{"caller": me, "kind": "keys", "name": "shop"}},
		{"write", recorded{
			"caller": me, "kind": "key", "action": "put", "name": "prices/tea", "bytes": 8.0, "version": 1.0, "outcome": "OK",
		}},
		{"join", recorded{"caller": me, "name": "web/one"}},
		{"leave", recorded{"caller": me, "name": "web/one", "reason": "LEFT"}},
		{"policy", recorded{"rules": 1.0, "outcome": "OK"}},
		{"denial", recorded{
			"caller": "socket:app", "action": "sidekeeper.lock.v1.LockService/Get", "names": []any{"stock"}, "reason": "POLICY_DENIED", "omitted": 0.0,
		}},
	} {
		line := s.awaitEntry(want.event, func(line recorded) bool { return line["name"] == want.line["name"] })
		for field, value := range want.line {
			same(t, want.event+" "+field, line[field], value)
		}
		same(t, "fields of "+want.event, slices.Sorted(maps.Keys(line)), documentedEvents(t)[want.event])
	}
	for _, grant := range s.entriesOf("grant") {
		same(t, "the log knows the lease of a grant", strings.Contains(s.book.Text(), fmt.Sprintf(`"lease":"%v"`, grant["lease"])), true)
	}
	// with a resumption, which takes another process: test/endtoend; an expiry: service; and a gap: cmd/sidekeeper
	same(t, "events that the document tells of", len(documentedEvents(t)), 15)
	for _, id := range []string{released.GetHoldId(), broken.GetHoldId(), "a secret"} {
		same(t, "a secret in the record", strings.Contains(s.record.Text(), id), false)
	}
}

func TestWhoTriesAnIDOfSomebodyElseIsOnRecord(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, `rules: [{identities: ["*"], methods: ["sidekeeper.lock.v1.LockService/*", "sidekeeper.lease.v1.LeaseService/*"]}]`)
	lease, err := leasev1.NewLeaseServiceClient(s.callers["socket:app"]).Open(within(t), &leasev1.OpenRequest{})
	must(t, err)
	opened, err := lease.Recv()
	must(t, err)
	id := opened.GetOpened().GetLeaseId()
	_, err = leasev1.NewLeaseServiceClient(s.callers["socket:web"]).Close(within(t), &leasev1.CloseRequest{LeaseId: id})
	same(t, "Close", outcome(err), "NotFound LEASE_NOT_FOUND")
	stolen, err := lockv1.NewLockServiceClient(s.callers["dns:batch.test"]).Acquire(within(t), &lockv1.AcquireRequest{Name: "orders", LeaseId: id})
	must(t, err)
	_, err = stolen.Recv()
	same(t, "Acquire", outcome(err), "NotFound LEASE_NOT_FOUND")
	for thief, action := range map[string]string{
		"socket:web": "sidekeeper.lease.v1.LeaseService/Close", "dns:batch.test": "sidekeeper.lock.v1.LockService/Acquire",
	} {
		line := s.awaitEntry("denial", func(line recorded) bool { return line["caller"] == thief })
		same(t, thief, line["action"], action)
		same(t, thief, line["reason"], "LEASE_NOT_FOUND")
	}
	same(t, "the id in the record", strings.Contains(s.record.Text(), id), false)
}

func TestAFloodOfDenialsFillsNoDisk(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, "rules: []")
	client := lockv1.NewLockServiceClient(s.callers["socket:app"])
	began := time.Now()
	var flood sync.WaitGroup
	for range 20 {
		flood.Go(func() {
			for range 25 {
				_, err := client.Get(within(t), &lockv1.GetRequest{Name: strings.Repeat("x", 10000)})
				same(t, "Get", outcome(err), denied)
			}
		})
	}
	flood.Wait()
	const burst, perSecond = 100, 10 // of denials that are written; the others are counted
	lines := len(s.entriesOf("denial"))
	most := burst + int(perSecond*time.Since(began).Seconds()) + 1
	if lines < burst || lines > most {
		t.Errorf("%d lines, and at most %d are due", lines, most)
	}
	same(t, "long names in the record", strings.Contains(s.record.Text(), strings.Repeat("x", 201)), false)
	attempts := 500
	awaitThat(t, "the count of what was left out", func() bool {
		_, _ = client.Get(within(t), &lockv1.GetRequest{Name: "x"})
		attempts++
		told := 0
		for _, entry := range s.entriesOf("denial") {
			told += 1 + int(entry["omitted"].(float64))
		}
		return told == attempts
	})
}
