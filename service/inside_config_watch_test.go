// It looks inside: how much a slow caller has not taken is up to gRPC otherwise.

package service

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A stepwise caller takes a message when the test says so.
type stepwise struct {
	take chan struct{}
	got  []string
}

func (s *stepwise) send(message *configv1.WatchResponse) error {
	<-s.take
	s.got = append(s.got, expect.Watched(message))
	return nil
}

// A Caller that reads slowly is told of the newest state of each key, once.
func TestASlowCallerIsToldOfTheNewestOnly(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		memory := standin.New(standin.Options{})
		defer memory.Close()
		services := New(Options{}, memoryEnsemble{memory.NewReader()})
		config := newConfigService(services)
		ctx, cancel := context.WithCancel(t.Context())
		own := &stepwise{take: make(chan struct{})}
		w := &keyWatch{asText: true, box: newOutbox(overOf(ctx), own.send), pending: map[string]*keyNews{}}
		ended := make(chan error, 1)
		go func() { ended <- w.run(config.broadcasts.watch(watchedKeys{below: true}), services.drain) }()
		synctest.Wait()
		put := func(keys ...string) {
			for _, key := range keys {
				_, err := config.Put(ctx, &configv1.PutRequest{Key: key, Content: &configv1.PutRequest_Text{Text: "x"}})
				if err != nil {
					t.Error(err)
				}
				synctest.Wait()
			}
		}
		put("a", "a", "b", "c")
		for _, key := range []string{"c", "b"} {
			if _, err := config.Delete(ctx, &configv1.DeleteRequest{Key: key}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		put("b", "d")
		for range 2 {
			own.take <- struct{}{}
			synctest.Wait()
		}
		put("d", "d", "d", "a")
		for range 2 {
			own.take <- struct{}{}
			synctest.Wait()
		}
		cancel()
		<-ended
		w.box.wait()
		same(t, "messages", strings.Join(own.got, " | "), "synced | a=x@v2 coalesced b=x@v1 d=x@v1 | d=x@v2 | d=x@v4 coalesced a=x@v3")
	})
}
