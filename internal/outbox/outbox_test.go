package outbox_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/outbox"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

const (
	place outbox.Topic = 1 + iota
	connectivity
	revocation
)

// patient never gives up a reader.
func patient() {}

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
		box := outbox.New(reader.send, patient)
		box.Put(place, says("queued 2"))
		synctest.Wait() // it is being sent
		box.Put(place, says("queued 1"))
		box.Put(place, says("granted"))
		box.Put(connectivity, says("suspended"))
		box.Put(connectivity, says("resumed"))
		box.Put(revocation, func() (string, bool) { return "too late", false })
		for range 3 {
			reader.reads <- struct{}{}
		}
		box.Wait()
		expect.Same(t, "sent", reader.seen, "[queued 2 granted resumed]")
	})
}

// Ten seconds count from when a message was handed over, whenever the outbox has looked before.
func TestAnOutboxGivesUpAReaderAfterTenSeconds(t *testing.T) {
	t.Parallel()
	pauses := []time.Duration{9 * time.Second, 9 * time.Second, time.Second / 2, 9 * time.Second}
	for _, lingers := range []bool{false, true} {
		for sent := range len(pauses) + 1 {
			bubble.Test(t, func(t *testing.T) {
				reader := &slowReader{reads: make(chan struct{})}
				givenUp := make(chan struct{})
				box := outbox.New(reader.send, func() { close(givenUp) })
				if lingers {
					box.Linger(time.Second)
				}
				for _, pause := range pauses[:sent] {
					box.Put(place, says("queued"))
					<-time.After(pause)
					reader.reads <- struct{}{}
					<-time.After(time.Second / 2)
				}
				begun := time.Now()
				box.Put(place, says("granted"))
				<-givenUp
				expect.Same(t, "patience", time.Since(begun), 10*time.Second)
				close(reader.reads)
				box.Wait()
				box.Put(place, says("nobody hears this"))
				box.Wait()
			})
		}
	}
}

func TestAnOutboxThatIsKeptAliveIsNeverSilentForLonger(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		var sent []string
		box := outbox.New(func(message string) error {
			sent = append(sent, fmt.Sprint(message, " after ", time.Since(began)))
			return nil
		}, patient)
		box.KeepAlive(5*time.Second, "alive")
		<-time.After(12 * time.Second)
		box.Put(place, says("a view"))
		<-time.After(6 * time.Second)
		box.Wait()
		<-time.After(time.Minute)
		expect.Same(t, "sent", sent, "[alive after 0s alive after 5s alive after 10s a view after 12s alive after 17s]")
	})
}

func TestAnOutboxKeepsOneKeepaliveAtMostForASlowReader(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		reader := &slowReader{reads: make(chan struct{})}
		box := outbox.New(reader.send, patient)
		box.KeepAlive(time.Second, "alive")
		<-time.After(5 * time.Second)
		expect.Same(t, "unsent", box.Unsent() <= 1, true)
		close(reader.reads)
		box.Wait()
	})
}

// A bubble that has ended fails if a goroutine is left in it.
func TestAnIdleOutboxHasNoGoroutine(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		reader := &slowReader{reads: make(chan struct{}, 2)}
		box := outbox.New(reader.send, patient)
		for range 2 {
			reader.reads <- struct{}{}
			box.Put(place, says("hello"))
			synctest.Wait()
		}
		expect.Same(t, "sent", reader.seen, "[hello hello]")
	})
}

// What lingers sends what comes soon without another goroutine, and ends with the stream or when nothing comes.
func TestAnOutboxThatLingersEndsWhenNothingComes(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{true, false} {
		bubble.Test(t, func(t *testing.T) {
			var sent []string
			box := outbox.New(func(message string) error {
				sent = append(sent, message)
				return nil
			}, patient)
			box.Linger(time.Second)
			for _, pause := range []time.Duration{time.Second / 2, 999 * time.Millisecond, time.Second, 5 * time.Second} {
				box.Put(place, says(fmt.Sprint("before ", pause)))
				<-time.After(pause)
			}
			synctest.Wait() // for the race detector
			expect.Same(t, "sent", sent, "[before 500ms before 999ms before 1s before 5s]")
			began := time.Now()
			if waits { // otherwise nothing is left that would be waited for
				box.Put(place, says("last"))
				box.Wait()
			}
			expect.Same(t, "waited", time.Since(began), time.Duration(0))
		})
	}
}
