package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// A flood is a server that says how long the list of one directory is, and then sends no more of it over that connection.
type flood struct {
	babbler

	length int
	asked  atomic.Int32
}

const flooded = "/d/large"

func (f *flood) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		for first := true; ; first = false {
			request, err := readFrame(server)
			if err != nil {
				return
			}
			if !first && kindOf(request) == opGetChildren2 && pathIn(request[8:]) == flooded {
				f.asked.Add(1)
				_, _ = server.Write(append(binary.BigEndian.AppendUint32(nil, uint32(f.length)), f.head(request, false, 0)...))
				for err == nil { // what is asked over this connection is heard, and not answered
					_, err = readFrame(server)
				}
				return
			}
			if f.answer(server, request, first) != nil {
				return
			}
		}
	}()
	return client, nil
}

func (f *flood) client(t *testing.T) *Client {
	t.Helper()
	began := time.Now()
	client, err := New(Config{
		Servers: []string{"flood:1"}, SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Dial: f.dial, Clock: func() time.Duration { return time.Second + time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A list that does not come to its end, or that nobody reads over, costs the shared reader its connection: once, and not each time that
// somebody asks for it.
func TestAListThatIsTooLargeIsAskedForOnce(t *testing.T) {
	for name, length := range map[string]int{"slow": readerBuffer + 1, "huge": longestSkipped + replyHead + 1, "longest": 1<<32 - 1} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				server := &flood{length: length}
				client := server.client(t)
				defer client.Close()
				for range 3 {
					var askers sync.WaitGroup
					for range 4 {
						askers.Go(func() { refuseLarge(t, client, length) })
					}
					askers.Wait()
					names, err := client.Children(t.Context(), "/d")
					for began := time.Now(); errors.Is(err, recipes.ErrUnreachable) && time.Since(began) < client.config.SessionTimeout; {
						names, err = client.Children(t.Context(), "/d")
					}
					if err != nil || len(names) != 1 {
						t.Errorf("another directory is listed with %v, %v", names, err)
					}
				}
				if asked := server.asked.Load(); asked != 1 {
					t.Errorf("it was asked for %d times", asked)
				}
			})
		})
	}
}

// refuseLarge lists and watches the directory, and hears at once that it is too large.
func refuseLarge(t *testing.T, client *Client, length int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	var large *recipes.LargeDirectory
	if _, err := client.Children(ctx, flooded); !errors.As(err, &large) || large.Path != flooded || large.Bytes != length {
		t.Errorf("listed with %v", err)
	}
	if _, _, err := client.WatchChildren(ctx, flooded); !errors.Is(err, recipes.ErrDirectoryTooLarge) {
		t.Errorf("watched with %v", err)
	}
	if took := time.Since(began); took > 100*time.Millisecond { // another connection may be made
		t.Errorf("told after %v", took)
	}
}
