package simulation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// A directory is listed once, and then its bytes are worked out by its number of children, at each count anew.
func TestADirectoryThatGrewALittleIsNotTakenForAFullOne(t *testing.T) {
	const dir, children, atOnce, grown = "/many", 2400, 100, 96
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, _ *witness) {
		began := time.Now()
		client, err := zookeeper.New(zookeeper.Config{
			Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second,
			Dial: e.Dialer(0), Clock: func() time.Duration { return time.Since(began) }, Directories: []string{dir}, MaxChildren: 50000,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		long := strings.Repeat("x", 490) // 1.2 MB in all, of the 2 that a directory may have
		made := 0
		commit := func(more int) {
			t.Helper()
			var changes []recipes.Change
			for range more {
				changes = append(changes, recipes.Create(fmt.Sprintf("%s/%s%06d", dir, long, made), nil))
				made++
			}
			if _, err := client.Commit(t.Context(), changes...); err != nil {
				t.Fatalf("the child %d, after %v: %v", made, time.Since(began), err)
			}
		}
		for made < children {
			commit(atOnce)
		}
		time.Sleep(time.Minute)
		commit(1) // counts them
		time.Sleep(time.Minute)
		commit(grown)
		for range 30 {
			time.Sleep(time.Minute)
			commit(1)
		}
	})
}
