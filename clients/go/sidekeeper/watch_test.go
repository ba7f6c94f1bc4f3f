package sidekeeper

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A watchStream is a watch of a sidecar that a test plays.
type watchStream[M any] struct {
	grpc.ClientStream
	ctx  context.Context
	sent chan *M
}

func (w *watchStream[M]) Recv() (*M, error) {
	select {
	case message := <-w.sent:
		return message, nil
	case <-w.ctx.Done():
		return nil, status.FromContextError(w.ctx.Err()).Err()
	}
}

// watchingLock reads a watch until its end, with a pause after each view, and then tells what came, and when.
func watchingLock(ctx context.Context, sent chan *lockv1.WatchResponse, pause time.Duration) <-chan []string {
	began, told := time.Now(), make(chan []string, 1)
	open := func(ctx context.Context) (grpc.ServerStreamingClient[lockv1.WatchResponse], error) {
		return &watchStream[lockv1.WatchResponse]{ctx: ctx, sent: sent}, nil
	}
	from := func(wire *lockv1.WatchResponse) (string, bool) { return wire.GetView().GetName(), true }
	go func() {
		var seen []string
		for name, err := range messages(ctx, bubbleClock{time.Now().Add(-time.Second)}, open, from, unheard) {
			word := name
			if err != nil {
				word = err.Error()
			}
			seen = append(seen, fmt.Sprint(word, " after ", time.Since(began)))
			time.Sleep(pause) //nolint:forbidigo // in a bubble
		}
		told <- seen
	}()
	return told
}

func TestAWatchEndsWhenTheSidecarFallsSilent(t *testing.T) {
	view, kept := &lockv1.WatchResponse{View: &lockv1.View{Name: "orders"}}, &lockv1.WatchResponse{Keepalive: &holdv1.Keepalive{}}
	for _, c := range []struct {
		about string
		sent  []*lockv1.WatchResponse // one every five seconds, and then nothing
		pause time.Duration           // of the reader after each view
		seen  string
	}{
		{
			"it has sent keepalives",
			[]*lockv1.WatchResponse{kept, view, kept, kept},
			0,
			"orders after 5s Unavailable: the sidecar is silent after 30s",
		},
		{
			"it has sent a keepalive and then views",
			[]*lockv1.WatchResponse{kept, view, view},
			0,
			"orders after 5s orders after 10s Unavailable: the sidecar is silent after 25s",
		},
		{"it sends no keepalives", []*lockv1.WatchResponse{view}, 0, "orders after 0s DeadlineExceeded: context deadline exceeded after 1h0m0s"},
		{
			"the reader is slow",
			[]*lockv1.WatchResponse{kept, view, view},
			time.Minute,
			"orders after 5s orders after 1m5s Unavailable: the sidecar is silent after 2m20s",
		},
	} {
		t.Run(c.about, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				sent := make(chan *lockv1.WatchResponse, len(c.sent))
				seen := watchingLock(ctx, sent, c.pause)
				for _, message := range c.sent {
					synctest.Wait()
					sent <- message
					<-time.After(5 * time.Second)
				}
				if got := strings.Join(<-seen, " "); got != c.seen {
					t.Errorf("seen %s", got)
				}
			})
		})
	}
}

// A playedConfig is a sidecar whose watches a test plays.
type playedConfig struct {
	configv1.ConfigServiceClient
	opened chan *watchStream[configv1.WatchResponse]
	asked  time.Duration // what the newest watch asks for
}

func (p *playedConfig) Watch(
	ctx context.Context, request *configv1.WatchRequest, _ ...grpc.CallOption,
) (grpc.ServerStreamingClient[configv1.WatchResponse], error) {
	p.asked = request.GetKeepalive().AsDuration()
	stream := &watchStream[configv1.WatchResponse]{ctx: ctx, sent: make(chan *configv1.WatchResponse, 2)}
	p.opened <- stream
	return stream, nil
}

func TestTheAgeOfAConfigViewCountsFromWhenASilentSidecarWasLastHeard(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		sidecar := &playedConfig{opened: make(chan *watchStream[configv1.WatchResponse], 1)}
		config := &Config{sidecar, &Client{clock: bubbleClock{time.Now().Add(-time.Second)}}}
		begin := func() {
			stream := <-sidecar.opened
			stream.sent <- &configv1.WatchResponse{Event: &configv1.WatchResponse_Keepalive{Keepalive: &holdv1.Keepalive{}}}
			stream.sent <- &configv1.WatchResponse{Event: &configv1.WatchResponse_Synced{Synced: &configv1.Synced{}}}
			synctest.Wait()
		}
		go begin()
		view, err := config.View(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer view.Close()
		ages := []time.Duration{view.Age()}
		for _, pause := range []time.Duration{SilenceTimeout - 1, 1, time.Hour} {
			<-time.After(pause)
			synctest.Wait()
			ages = append(ages, view.Age())
		}
		begin()
		ages = append(ages, view.Age())
		if got := fmt.Sprint(ages, sidecar.asked); got != "[0s 0s 15s 1h0m15s 0s] 3s" {
			t.Error(got)
		}
	})
}
