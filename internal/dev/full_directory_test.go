package dev

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

const fullDirectory = "/sidekeeper/config/full"

// counted serves an ensemble to a client that counts children.
func counted(t *testing.T, maxChildren int) (address string, _ *zookeeper.Client) {
	t.Helper()
	memory := embedded.New(embedded.Options{Tick: 2 * time.Second})
	t.Cleanup(memory.Close)
	server, err := embedded.Serve(memory, embedded.ServerOptions{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server.Address(), clientCounting(t, server.Address(), maxChildren)
}

func clientCounting(t *testing.T, address string, maxChildren int) *zookeeper.Client {
	t.Helper()
	c, err := zookeeper.New(zookeeper.Config{
		Servers: []string{address}, SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second,
		Directories: []string{largeDirectory, "/sidekeeper/config", "/sidekeeper/groups"}, MaxChildren: maxChildren,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// untilFull makes children until one is refused, and returns how many there are.
func untilFull(t *testing.T, most int, create func(i int) error) (int, *recipes.FullDirectory) {
	t.Helper()
	for i := range most {
		err := create(i)
		var full *recipes.FullDirectory
		switch {
		case errors.As(err, &full):
			return i, full
		case err != nil:
			t.Fatal(err)
		}
	}
	t.Fatalf("%d children were made", most)
	return 0, nil
}

func TestADirectoryGetsOnlySoManyChildren(t *testing.T) {
	t.Parallel()
	address, c := counted(t, 50)
	config := recipes.Config{Root: fullDirectory}
	put := func(c *zookeeper.Client, key string) error {
		_, err := config.Put(t.Context(), c, key, nil, recipes.Precondition{})
		return err
	}
	made, full := untilFull(t, 70, func(i int) error { return put(c, fmt.Sprint(i)) })
	if made != 50 || full.Path != fullDirectory || full.Limit != "max-children" || full.Max != 50 || full.Used != 50 {
		t.Errorf("refused after %d with %+v", made, full)
	}
	if err := put(c, "0"); err != nil {
		t.Errorf("a key that is there: %v", err)
	}
	other := recipes.Config{Root: "/sidekeeper/config/other"}
	if _, err := other.Put(t.Context(), c, "a", nil, recipes.Precondition{}); err != nil {
		t.Errorf("in another directory: %v", err)
	}
	another := clientCounting(t, address, 50) // it has to count first
	if more, _ := untilFull(t, 70, func(i int) error { return put(another, fmt.Sprintf("other-%d", i)) }); more > 20 {
		t.Errorf("another sidecar made %d more", more)
	}
	for i := range 20 {
		if err := config.Delete(t.Context(), c, fmt.Sprint(i), recipes.Precondition{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(c, "new"); err != nil {
		t.Errorf("after 20 were deleted: %v", err)
	}
}

func TestMembersGroupsAndLocksAreCountedInTheirDirectories(t *testing.T) {
	t.Parallel()
	_, c := counted(t, 50)
	s, err := c.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	join := func(group, member string) error {
		_, _, err := s.Create(t.Context(), group+"/"+member, nil)
		return err
	}
	if made, full := untilFull(t, 70, func(i int) error { return join("/sidekeeper/groups/g", fmt.Sprint(i)) }); made != 50 {
		t.Errorf("member %d: %v", made, full)
	}
	made, full := untilFull(t, 70, func(i int) error { return join(fmt.Sprintf("/sidekeeper/groups/other-%d", i), "m") })
	if made != 49 { // beside g
		t.Errorf("group %d: %v", made, full)
	}
	made, full = untilFull(t, 70, func(i int) error {
		_, err := s.Enqueue(t.Context(), fmt.Sprintf("/sidekeeper/locks/%d", i), "lock-", nil)
		return err
	})
	if made != 50 || full.Path != "/sidekeeper/locks" {
		t.Errorf("lock %d: %v", made, full)
	}
	if _, err := s.Enqueue(t.Context(), "/sidekeeper/locks/0", "lock-", nil); err != nil {
		t.Errorf("a lock that is there: %v", err)
	}
}

func TestADirectoryGetsOnlySoManyBytesOfNames(t *testing.T) {
	t.Parallel()
	address, unlimited := counted(t, 0)
	long := strings.Repeat("x", 200)
	for i := range 100 { // 2 MiB and a little
		var changes []recipes.Change
		for j := range 104 {
			changes = append(changes, recipes.Create(fmt.Sprintf("%s/%s%03d%03d", largeDirectory, long[6:], i, j), nil))
		}
		if _, err := unlimited.Commit(t.Context(), changes...); err != nil {
			t.Fatal(err)
		}
	}
	c := clientCounting(t, address, 50000)
	made, full := untilFull(t, 500, func(i int) error {
		_, err := c.Commit(t.Context(), recipes.Create(fmt.Sprintf("%s/%d", largeDirectory, i), nil))
		return err
	})
	if full.Limit != "bytes of names" || full.Max != 2<<20 || full.Used < 2<<20 || full.Used > 3<<20 {
		t.Errorf("refused after %d with %+v", made, full)
	}
}

// A count is believed for ten seconds, in which one caller makes more names than a list may have.
func TestADirectoryThatFillsBetweenTwoCountsGetsOnlySoManyBytesOfNames(t *testing.T) {
	t.Parallel()
	_, c := counted(t, 50000)
	long := strings.Repeat("x", 200)
	made, full := untilFull(t, 200, func(i int) error {
		var changes []recipes.Change
		for j := range 104 {
			changes = append(changes, recipes.Create(fmt.Sprintf("%s/%s%03d%03d", largeDirectory, long[6:], i, j), nil))
		}
		_, err := c.Commit(t.Context(), changes...)
		return err
	})
	if full.Limit != "bytes of names" || full.Used > 3<<20 {
		t.Errorf("refused after %d with %+v", made*104, full)
	}
}
