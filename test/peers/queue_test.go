package peers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
)

const queueRoot = "/sidekeeper/queues/"

// queues has the stubs of a sidecar's queues.
func queues(t *testing.T, address string) queuev1.QueueServiceClient {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { connection.Close() })
	return queuev1.NewQueueServiceClient(connection)
}

// consumer starts a program with Curator's queues.
func (s stage) consumer(t *testing.T) *peer { return s.consumerFor(t, sessionTimeout) }

func (s stage) consumerFor(t *testing.T, timeout time.Duration) *peer {
	t.Helper()
	return startProgram(t, javaCommand(t, "Consumer", s.joined(), fmt.Sprint(timeout.Milliseconds())))
}

// takeItem waits for an item, calls work with it while it is the caller's, and has it removed.
func takeItem(ctx context.Context, from queuev1.QueueServiceClient, queue string, work func(item string)) error {
	stream, err := from.Take(ctx, &queuev1.TakeRequest{Name: queue, WaitTimeout: durationpb.New(patience), Owner: "a peer"})
	if err != nil {
		return err
	}
	var delivered *queuev1.Delivered
	for delivered == nil {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		delivered = event.GetDelivered()
	}
	for _, value := range delivered.GetValues() {
		work(string(value))
	}
	_, err = from.Done(ctx, &queuev1.DoneRequest{HoldId: delivered.GetHoldId()})
	return err
}

// wantItems takes items of a queue, which must be these, in this order.
func wantItems(t *testing.T, from queuev1.QueueServiceClient, queue string, want ...string) {
	t.Helper()
	var got []string
	for range want {
		must(t, takeItem(t.Context(), from, queue, func(item string) { got = append(got, item) }))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the items of %s are %v, want %v", queue, got, want)
	}
}

// takenBy is what Curator's consumer has taken.
func takenBy(t *testing.T, curator *peer) []string {
	t.Helper()
	return strings.Fields(curator.tell(t, "taken"))
}

// awaitItems returns when there are so many items, or it has waited for long.
func awaitItems(taken func() int, count int) {
	for deadline := time.Now().Add(patience + time.Duration(count)*time.Second); taken() < count && time.Now().Before(deadline); {
		<-time.After(10 * time.Millisecond)
	}
}

// awaitTaken fails the test unless Curator's consumer takes these items, in this order.
func awaitTaken(t *testing.T, curator *peer, want ...string) {
	t.Helper()
	awaitItems(func() int { return len(takenBy(t, curator)) }, len(want))
	if got := takenBy(t, curator); !slices.Equal(got, want) {
		t.Errorf("Curator has taken %v, want %v", got, want)
	}
}

// queueKinds are those of Curator's queues, with items and the order in which these are taken. What is delayed is due in the order of the puts,
// however long these take.
var queueKinds = map[string]struct {
	puts  []ordered
	taken []string
}{
	"plain":       {[]ordered{{"a", 0}, {"b", 0}, {"c", 0}}, []string{"a", "b", "c"}},
	"prioritized": {[]ordered{{"last", 7}, {"third", 0}, {"first", -9}, {"second", -1}}, []string{"first", "second", "third", "last"}},
	"delayed":     {[]ordered{{"first", 200}, {"last", 400}}, []string{"first", "last"}},
}

// An ordered item has a priority or a delay in milliseconds, as its queue has them.
type ordered struct {
	item  string
	order int32
}

func (o ordered) request(kind, queue string) *queuev1.PutRequest {
	request := &queuev1.PutRequest{Name: queue, Value: []byte(o.item)}
	switch kind {
	case "prioritized":
		request.Order = &queuev1.PutRequest_Priority{Priority: o.order}
	case "delayed":
		request.Order = &queuev1.PutRequest_Delay{Delay: durationpb.New(time.Duration(o.order) * time.Millisecond)}
	}
	return request
}

func TestItemsAreTakenInOneOrderByUsAndByCuratorWhoeverPutsThem(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		ours, curator := queues(t, s.sidecars[0]), s.consumer(t)
		for kind, items := range queueKinds {
			queue, began := "from-curator-"+kind, time.Now()
			expect(t, curator, "opened", "open", kind, queueRoot+queue)
			for _, o := range items.puts {
				expect(t, curator, "put", "put", o.item, o.order)
			}
			wantItems(t, ours, queue, items.taken...)
			wantDelay(t, kind, began)

			queue, began = "to-curator-"+kind, time.Now()
			for _, o := range items.puts {
				_, err := ours.Put(t.Context(), o.request(kind, queue))
				must(t, err)
			}
			expect(t, curator, "opened", "consume", kind, queueRoot+queue)
			awaitTaken(t, curator, items.taken...)
			wantDelay(t, kind, began)
			awaitEmpty(t, ours, queue)
		}
	})
}

// wantDelay fails the test if the items of a delayed queue were taken before the last was due, which is in whole milliseconds.
func wantDelay(t *testing.T, kind string, began time.Time) {
	t.Helper()
	if took := time.Since(began); kind == "delayed" && took < 390*time.Millisecond {
		t.Errorf("taken after %v", took)
	}
}

// The ensemble removes containers that are empty: a consumer of Curator's would hear of nothing more.
func TestAConsumerOfCuratorsTakesWhatWePutIntoAQueueThatWasEmptyForLong(t *testing.T) {
	s := realStage(t, 1)
	ours, curator, session := queues(t, s.sidecars[0]), s.consumer(t), s.look(t)
	put := func(item string) {
		_, err := ours.Put(t.Context(), &queuev1.PutRequest{Name: "lonely", Value: []byte(item)})
		must(t, err)
	}
	put("early")
	expect(t, curator, "opened", "consume", "plain", queueRoot+"lonely")
	awaitTaken(t, curator, "early")
	awaitEmpty(t, ours, "lonely")
	awaitRemoval(t, session, queueRoot+"container")
	put("late")
	awaitTaken(t, curator, "early", "late")
}

func TestAnItemOfAConsumerOfCuratorsThatIsKilledIsDeliveredToACaller(t *testing.T) {
	s := realStage(t, 1)
	ours, curator := queues(t, s.sidecars[0]), s.consumerFor(t, 3*time.Second)
	expect(t, curator, "opened", "consume", "plain", queueRoot+"killed")
	expect(t, curator, "put", "put", "endless", 0)
	awaitTaken(t, curator, "endless")
	curator.kill()
	wantItems(t, ours, "killed", "endless")
}

// awaitRemoval makes a container that is empty at once, and returns when the ensemble has removed it, and others.
func awaitRemoval(t *testing.T, session *zk.Conn, container string) {
	t.Helper()
	_, err := session.CreateContainer(container, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
	must(t, err)
	_, err = session.Create(container+"/child", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	must(t, session.Delete(container+"/child", -1))
	awaitRemoved(t, session, container)
}

// Callers of ours and consumers of Curator's take the items of one queue at the same time, into which all of them put.
func TestEachItemIsDeliveredOnceToAConsumerOfCuratorsOrToACallerOfOurs(t *testing.T) {
	rounds := (*acquisitions + 2*each - 1) / (2 * each)
	holds, folder := takeTogether(t, rounds)
	if c := count(holds); c.across < c.holds/10 {
		t.Errorf("%d items, %d of them taken after one of another library", c.holds, c.across)
	}
	if violations := notTakenOnce(holds, 2*each*rounds); len(violations) > 0 {
		keep(t, folder)
		t.Errorf("%d items: %s", len(violations), strings.Join(violations[:min(5, len(violations))], "; "))
	}
}

// A consumer of Curator's without a lock path takes what a caller works on.
func TestItemsThatAreNotTakenOnceAreFound(t *testing.T) {
	s, folder := realStage(t, 1), t.TempDir()
	ours, curator := queues(t, s.sidecars[0]), s.consumer(t)
	_, err := ours.Put(t.Context(), &queuev1.PutRequest{Name: "twice", Value: []byte("0")})
	must(t, err)
	must(t, takeItem(t.Context(), ours, "twice", func(item string) {
		began := now()
		expect(t, curator, "opened", "consume", "unlocked", queueRoot+"twice", folder)
		awaitHolds(t, folder, "curator", func(noted []hold) bool { return len(noted) == 1 && !noted[0].lasts() })
		record := fmt.Sprintf("%s %d %d %d\n", item, began, began, now())
		must(t, os.WriteFile(filepath.Join(folder, "sidekeeper-0-0"+recordSuffix), []byte(record), 0o600))
	}))
	holds, err := readHolds(folder, "")
	must(t, err)
	if violations := notTakenOnce(holds, 1); len(violations) != 1 {
		t.Errorf("%d violations are found in %v", len(violations), holds)
	}
}

// takeTogether has consumers of both sides put so many items each and take all, and returns when each was worked on, for a millisecond.
func takeTogether(t *testing.T, rounds int) (holds []hold, folder string) {
	t.Helper()
	s, path, folder := realStage(t, 2), contended(queueRoot), t.TempDir()
	queue := strings.TrimPrefix(path, queueRoot)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var takers, puts errgroup.Group
	for i := range each {
		ours, curator := queues(t, s.sidecars[i%len(s.sidecars)]), s.consumer(t)
		expect(t, curator, "opened", "consume", "plain", path, folder)
		takers.Go(func() error {
			return takeItems(ctx, ours, queue, filepath.Join(folder, fmt.Sprint("sidekeeper-0-", i, recordSuffix)))
		})
		puts.Go(func() error { return putItems(ctx, ours, curator, queue, i*rounds, rounds) })
	}
	must(t, puts.Wait())
	must(t, awaitAtMost(ctx, queues(t, s.sidecars[0]), queue, 0))
	cancel()
	must(t, takers.Wait())
	awaitHolds(t, folder, "", func(noted []hold) bool {
		holds = noted
		return !slices.ContainsFunc(noted, hold.lasts)
	})
	t.Log(count(holds))
	return holds, folder
}

// putItems puts so many items twice, and not many more than are taken.
func putItems(ctx context.Context, ours queuev1.QueueServiceClient, curator *peer, queue string, first, rounds int) error {
	for i := first; i < first+rounds; i++ {
		if _, err := ours.Put(ctx, &queuev1.PutRequest{Name: queue, Value: fmt.Append(nil, 2*i)}); err != nil {
			return err
		}
		if answer, err := curator.order(patience, "put", 2*i+1, 0); err != nil || answer != "put" {
			return fmt.Errorf("%s: %w", answer, err)
		}
		if err := awaitAtMost(ctx, ours, queue, 4*each); err != nil {
			return err
		}
	}
	return nil
}

// takeItems takes items until ctx ends, and notes when it worked on each.
func takeItems(ctx context.Context, from queuev1.QueueServiceClient, queue, record string) error {
	file, err := os.Create(record)
	if err != nil {
		return err
	}
	defer file.Close()
	for ctx.Err() == nil {
		asked := now()
		err := takeItem(ctx, from, queue, func(item string) {
			fmt.Fprintf(file, "%s %d %d", item, asked, now())
			<-time.After(time.Millisecond)
			fmt.Fprintf(file, " %d\n", now())
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// notTakenOnce says which of so many items nobody has taken, or more than one.
func notTakenOnce(holds []hold, items int) (violations []string) {
	taken := map[string][]hold{}
	for _, h := range holds {
		taken[h.what] = append(taken[h.what], h)
	}
	for i := range items {
		if by := taken[fmt.Sprint(i)]; len(by) != 1 {
			violations = append(violations, fmt.Sprintf("%d: %v", i, by))
		}
	}
	return violations
}

// awaitEmpty returns when a queue has no items.
func awaitEmpty(t *testing.T, of queuev1.QueueServiceClient, queue string) {
	t.Helper()
	must(t, awaitAtMost(t.Context(), of, queue, 0))
}

// awaitAtMost returns when a queue has so many items or fewer.
func awaitAtMost(ctx context.Context, of queuev1.QueueServiceClient, queue string, most int32) error {
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		list, err := of.List(ctx, &queuev1.ListRequest{Prefix: queue})
		if err != nil || len(list.GetQueues()) == 0 || list.GetQueues()[0].GetItems() <= most {
			return err
		} else if time.Now().After(deadline) {
			return fmt.Errorf("left: %v", list)
		}
	}
}
