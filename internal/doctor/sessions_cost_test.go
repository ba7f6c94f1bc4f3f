package doctor

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// crowded is an ensemble of which each server tells of one session with many nodes.
type crowded struct {
	Ensemble

	dump  string
	reads atomic.Int64
}

func (c *crowded) Ask(_ context.Context, _, word string) (string, error) {
	if word == "dump" {
		return c.dump, nil
	}
	return "", nil
}

func (c *crowded) Get(_ context.Context, path string) (recipes.Node, error) {
	c.reads.Add(1)
	return recipes.Node{Data: fmt.Appendf(nil, `{"owner":%q}`, path)}, nil
}

func TestASessionWithManyNodesCostsAsMuchForEachAsOneWithFew(t *testing.T) {
	t.Parallel()
	for _, count := range []int64{100, 3000} {
		var dump strings.Builder
		dump.WriteString("0x1:\n")
		for i := range count {
			fmt.Fprintf(&dump, "\t/sidekeeper/locks/%d\n", i*7919%count)
		}
		var compared atomic.Int64
		ensemble := &crowded{dump: dump.String()}
		s := &sessions{ensemble: ensemble, known: map[string]*Session{}, compare: func(a, b string) int {
			compared.Add(1)
			return strings.Compare(a, b)
		}}
		all, _, err := s.all(t.Context(), Settings{Servers: []string{"a:1", "b:2", "c:3"}, Root: "/sidekeeper"})
		if err != nil || len(all) != 1 || int64(len(all[0].Nodes)) != count || int64(len(all[0].Owners)) != count || ensemble.reads.Load() != count {
			t.Fatalf("%d nodes: %d sessions, %d read, %v", count, len(all), ensemble.reads.Load(), err)
		}
		if each := compared.Load() / count; each > 100 {
			t.Errorf("%d nodes: each is compared %d times", count, each)
		}
	}
}
