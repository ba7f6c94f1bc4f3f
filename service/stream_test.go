// It looks inside: how much a slow caller has not taken is up to gRPC otherwise.

package service

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func says(text string) func() (string, bool) { return func() (string, bool) { return text, true } }

// A slowReader takes a message when the test says so.
type slowReader struct {
	reads chan struct{}
	seen  []string
}

func (r *slowReader) send(message string) error {
	if _, open := <-r.reads; !open {
		return errors.New("the stream has ended")
	}
	r.seen = append(r.seen, message)
	return nil
}

func TestAnOutboxKeepsTheNewestOfEachTopicAndNeverTheGrantFromItsCaller(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		reader := &slowReader{reads: make(chan struct{})}
		box := newOutbox(overOf(t.Context()), reader.send)
		box.put(topicPlace, says("queued 2"))
		synctest.Wait() // it is being sent
		box.put(topicPlace, says("queued 1"))
		box.put(topicPlace, says("granted"))
		box.put(topicConnectivity, says("suspended"))
		box.put(topicConnectivity, says("resumed"))
		box.put(topicRevocation, func() (string, bool) { return "too late", false })
		for range 3 {
			reader.reads <- struct{}{}
		}
		box.wait()
		same(t, "sent", reader.seen, "[queued 2 granted resumed]")
	})
}

func TestAnOutboxGivesUpAReaderAfterTenSeconds(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		reader := &slowReader{reads: make(chan struct{})}
		box := newOutbox(overOf(t.Context()), reader.send)
		begun := time.Now()
		box.put(topicPlace, says("granted"))
		<-box.over.Done()
		same(t, "cause", box.over.why(), errSlowReader)
		same(t, "patience", time.Since(begun), 10*time.Second)
		close(reader.reads)
		box.wait()
		box.put(topicPlace, says("nobody hears this"))
		box.wait()
	})
}

func TestAnOutboxThatIsKeptAliveIsNeverSilentForLonger(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		var sent []string
		box := newOutbox(overOf(t.Context()), func(message string) error {
			sent = append(sent, fmt.Sprint(message, " after ", time.Since(began)))
			return nil
		})
		box.keepAlive(5*time.Second, "alive")
		<-time.After(12 * time.Second)
		box.put(topicPlace, says("a view"))
		<-time.After(6 * time.Second)
		box.wait()
		<-time.After(time.Minute)
		same(t, "sent", sent, "[alive after 0s alive after 5s alive after 10s a view after 12s alive after 17s]")
	})
}

func TestAnOutboxKeepsOneKeepaliveAtMostForASlowReader(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		reader := &slowReader{reads: make(chan struct{})}
		box := newOutbox(overOf(t.Context()), reader.send)
		box.keepAlive(time.Second, "alive")
		<-time.After(5 * time.Second)
		same(t, "unsent", box.unsent() <= 1, true)
		close(reader.reads)
		box.wait()
	})
}

func TestAnIdleOutboxHasNoGoroutine(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		reader := &slowReader{reads: make(chan struct{}, 2)}
		box := newOutbox(overOf(t.Context()), reader.send)
		for range 2 {
			reader.reads <- struct{}{}
			box.put(topicPlace, says("hello"))
			synctest.Wait()
			same(t, "sending", box.sending, false)
		}
	})
}
