package recipes

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What the server makes of any prefix and number is read back, and nothing else is taken for a contender.
func FuzzNamesOfContenders(f *testing.F) {
	f.Add("_c_"+dashed, uint8(0), int32(7))
	f.Add("", uint8(3), int32(math.MinInt32))
	f.Add("a-lock-0000000001", uint8(2), int32(-1))
	f.Add(plain+"__lock__", uint8(4), int32(math.MaxInt32))
	f.Add("lock--", uint8(0), int32(-999999999))
	f.Add("lock-+000000001", uint8(1), int32(1))
	f.Add("\xff/", uint8(9), int32(0))
	f.Add("lock--000000000", uint8(0), int32(-1))
	f.Add("lock--0123456789", uint8(0), int32(-1))
	f.Fuzz(func(t *testing.T, prefix string, which uint8, number int32) {
		made := markers[int(which)%len(markers)]
		name := prefix + made.text + fmt.Sprintf("%010d", number)
		read, ok := parseChild(name)
		if !ok || read.name != name || read.sequence != number || read.mode != made.mode {
			t.Errorf("%q is read as %+v", name, read)
		}
		if read, ok := parseChild(prefix); ok {
			number := fmt.Sprintf("%010d", read.sequence)
			marked, numbered := strings.CutSuffix(prefix, number)
			known := slices.ContainsFunc(markers, func(m marker) bool {
				return m.mode == read.mode && strings.HasSuffix(marked, m.text)
			})
			if !numbered || !known && !textbook.MatchString(marked) {
				t.Errorf("%q is taken for %+v", prefix, read)
			}
		}
	})
}

// A directory with anything in it has one order of contenders, whatever the order in which it is listed, and each place
// stands behind exactly those that came before it.
func FuzzDirectoriesOfContenders(f *testing.F) {
	f.Add("lock-0000000002\nlock-0000000001\nx\n__READ__0000000002\n__WRIT__0000000002", uint64(1))
	f.Add("__READ__0000000002\n__WRIT__0000000002", uint64(1))
	f.Add("a-lock-2147483647\nb-lock--2147483648\n\n__lock__0000000000", uint64(2))
	f.Add(strings.Repeat("x-__READ__0000000003\ny-__READ__0000000003\n", 3), uint64(3))
	f.Fuzz(func(t *testing.T, listed string, seed uint64) {
		names := strings.Split(listed, "\n")
		slices.Sort(names)
		names = slices.Compact(names) // as in a directory
		contenders, foreignChildren := Lock{}.readQueue(names)
		if len(contenders)+foreignChildren != len(names) {
			t.Fatalf("%d contenders and %d foreignChildren of %d", len(contenders), foreignChildren, len(names))
		}
		ordered := contenders.inOrder()
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		again, _ := Lock{}.readQueue(names)
		if !slices.Equal(ordered, again.inOrder()) {
			t.Fatalf("%v, or %v", ordered, again)
		}
		for i, c := range ordered.holders() {
			becoming := c.sequence == ordered[0].sequence // a reader, of the writer ahead
			if i > 0 && (c.mode != Read || ordered[0].mode != Read && !becoming) {
				t.Errorf("%v hold together", ordered.holders())
			}
		}
		for i, c := range ordered {
			ahead, ok := ordered.aheadOf(c.name)
			if !ok || len(ahead) > i || !slices.Equal(ahead, ordered[:len(ahead)]) {
				t.Errorf("ahead of %v are %v", c, ahead)
			}
		}
		told, _, err := Lock{}.Contenders(t.Context(), directoryOf(names))
		if err != nil || told != len(ordered) {
			t.Errorf("%d contenders, %v", told, err)
		}
	})
}

// directoryOf is a tree in which every node has the same children.
type directoryOf []string

func (d directoryOf) Children(context.Context, string) ([]string, error) { return d, nil }

func (d directoryOf) WatchChildren(context.Context, string) ([]string, *Signal, error) {
	return d, nil, nil
}

func (d directoryOf) Get(context.Context, string) (Node, error) { return Node{}, nil }

func (d directoryOf) Watch(context.Context, string) (Node, *Signal, error) {
	return Node{}, nil, nil
}
func (d directoryOf) CatchUp(context.Context) error { return nil }
