package zookeeper

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// What one caller puts into an ensemble, real as it is here, is no matter to the others.
func TestLimitsOnARealEnsemble(t *testing.T) {
	e := startEnsemble(t, ensemble.Options{JVM: []string{"-Dzookeeper.enforceQuota=true"}})
	t.Run("a list that is too long fails whoever asks for it alone", func(t *testing.T) { aLongListFailsItsAsker(t, e) })
}

func aLongListFailsItsAsker(t *testing.T, e *ensemble.Ensemble) {
	const large, other = "/sidekeeper/large", "/sidekeeper/other"
	c := newClient(t, e)
	for _, dir := range []string{large, other} {
		if err := c.MakeDirectory(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 194)
	for i := range 212 {
		var changes []recipes.Change
		for j := range 100 {
			changes = append(changes, recipes.Create(fmt.Sprintf("%s/%s%03d%03d", large, long, i, j), nil))
		}
		if _, err := c.Commit(t.Context(), changes...); err != nil {
			t.Fatal(err)
		}
	}
	config := recipes.Config{Root: other}
	if _, err := config.Put(t.Context(), c, "key", []byte("0"), recipes.Precondition{}); err != nil {
		t.Fatal(err)
	}
	view, _ := c.reader.current()
	for i := range 20 {
		_, changed, err := c.Watch(t.Context(), other+"/key")
		if err != nil {
			t.Fatal(err)
		}
		var tooLarge *recipes.LargeDirectory
		c.reader.large.mu.Lock()
		c.reader.large.known = nil // or it would not be asked for
		c.reader.large.mu.Unlock()
		if _, err := c.Children(t.Context(), large); !errors.As(err, &tooLarge) || tooLarge.Path != large || tooLarge.Bytes < 4<<20 {
			t.Fatalf("list %d: %v", i, err)
		}
		value := fmt.Append(nil, i)
		if _, err := config.Put(t.Context(), c, "key", value, recipes.Precondition{}); err != nil {
			t.Fatalf("put %d: %v", i, err)
		}
		await(t, "the change", patience, changed)
		if err := c.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := config.Get(t.Context(), c, "key"); err != nil || !bytes.Equal(got.Value, value) {
			t.Fatalf("get %d: %q, %v", i, got.Value, err)
		}
	}
	if now, _ := c.reader.current(); now != view {
		t.Error("the reader had to begin anew")
	}
}
