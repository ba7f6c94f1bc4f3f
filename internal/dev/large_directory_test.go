package dev

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

const largeDirectory = "/sidekeeper/sequences"

// fill makes a directory whose list takes more than the reader's 4 MiB.
func fill(t *testing.T, c *zookeeper.Client) {
	t.Helper()
	long := strings.Repeat("a%2F", 97)
	for i := 0; i < 10600; {
		var changes []recipes.Change
		for range 100 {
			changes = append(changes, recipes.Create(fmt.Sprintf("%s/%s%06d", largeDirectory, long, i), nil))
			i++
		}
		if _, err := c.Commit(t.Context(), changes...); err != nil {
			t.Fatal(err)
		}
	}
}

// All who look at the ensemble share one reader, which must outlive whatever one of them asks it.
func TestADirectoryThatIsTooLargeToListFailsWhoeverListsItAlone(t *testing.T) {
	t.Parallel()
	memory := embedded.New(embedded.Options{Tick: 2 * time.Second})
	defer memory.Close()
	server, err := embedded.Serve(memory, embedded.ServerOptions{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c, err := zookeeper.New(zookeeper.Config{
		Servers: []string{server.Address()}, SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second,
		Directories: []string{largeDirectory, "/sidekeeper/config"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fill(t, c)
	_, changed, err := c.Watch(t.Context(), "/sidekeeper/config")
	if err != nil {
		t.Fatal(err)
	}
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for range 100 {
				var large *recipes.LargeDirectory
				if _, err := c.Children(t.Context(), largeDirectory); !errors.As(err, &large) || large.Path != largeDirectory || large.Bytes < 4<<20 {
					t.Errorf("listed with %v", err)
					return
				}
				if _, _, err := c.WatchChildren(t.Context(), largeDirectory); !errors.Is(err, recipes.ErrDirectoryTooLarge) {
					t.Errorf("watched with %v", err)
					return
				}
			}
		})
	}
	askers.Wait()
	select {
	case <-changed.Done():
		t.Error("what another caller watches is watched no longer")
	default:
	}
	if err := c.CatchUp(t.Context()); err != nil {
		t.Error(err)
	}
}
