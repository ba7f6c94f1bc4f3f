package recipes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestItemsAreGivenOutWithFewMoves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		items  int
		before string // "name:capacity item item, …"; a name in capitals is fresh
		after  string
	}{
		"one member takes all":                {3, "a:9", "a:0 1 2"},
		"parts are equal":                     {5, "a:9, b:9", "a:0 2 4, b:1 3"},
		"nothing moves without need":          {4, "a:9 0 1, b:9 2 3", "a:0 1, b:2 3"},
		"one item more is no need":            {5, "a:9 0 1 2, b:9 3 4", "a:0 1 2, b:3 4"},
		"a new member gets the last items":    {6, "a:9 0 1 2, b:9 3 4 5, c:9", "a:0 1, b:3 4, c:2 5"},
		"what has no member goes to the rest": {6, "a:9 0 1, b:9 2 3", "a:0 1 4, b:2 3 5"},
		"a fresh member gets nothing":         {4, "a:9 0 1 2 3, B:9", "a:0 1 2 3, B:"},
		"a fresh member gets what is left":    {4, "a:1, B:9", "a:0, B:1 2 3"},
		"fresh members share it":              {4, "a:0, B:9, C:9", "a:, B:0 2, C:1 3"},
		"a fresh member keeps what it has":    {4, "a:9 0 1, B:9 2 3", "a:0 1, B:2 3"},
		"capacity 0 is drained":               {4, "a:9 0 1, b:0 2 3", "a:0 1 2 3, b:"},
		"a fresh member is drained, too":      {4, "a:9 0 1, B:0 2 3", "a:0 1 2 3, B:"},
		"parts follow capacities":             {6, "a:4, b:2", "a:0 1 2 5, b:3 4"},
		"no part exceeds its capacity":        {9, "a:2, b:3", "a:1 3, b:0 2 4"},
		"an item that is gone goes":           {2, "a:9 0 7, b:9 1", "a:0, b:1"},
		"without members":                     {2, "", ""},
		"all are drained":                     {2, "a:0 0, b:0 1", "a:, b:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shares, items := parseShares(c.before), numbered(c.items)
			for _, of := range shares {
				of.items = slices.DeleteFunc(of.items, func(item string) bool { return !slices.Contains(items, item) })
			}
			balance(items, shares)
			if got := wordsOf(shares); got != c.after {
				t.Errorf("%q becomes %q, not %q", c.before, got, c.after)
			}
		})
	}
}

func numbered(count int) []string { return Items{Count: count}.All() }

func parseShares(text string) (shares []*share) {
	for part := range strings.SplitSeq(text, ", ") {
		words := strings.FieldsFunc(part, func(r rune) bool { return r == ' ' || r == ':' })
		if len(words) == 0 {
			continue
		}
		of := &share{name: words[0], fresh: strings.ToUpper(words[0]) == words[0], items: words[2:]}
		_, _ = fmt.Sscan(words[1], &of.capacity)
		shares = append(shares, of)
	}
	return shares
}

func wordsOf(shares []*share) string {
	var words []string
	for _, of := range shares {
		words = append(words, of.name+":"+strings.Join(of.items, " "))
	}
	return strings.Join(words, ", ")
}

// Members come, go and change their capacities. Each item has one member if there is room, parts are as near to one another as they may be, and
// what moves is little more than what must.
func TestPartsStayNearToOneAnother(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		items, shares := numbered(1+random.IntN(200)), []*share(nil)
		for step := range 12 {
			shares = disturbed(random, shares, step)
			balance(items, shares)
			checkParts(t, seed, items, shares)
		}
	}
}

func disturbed(random *rand.Rand, shares []*share, step int) []*share {
	if len(shares) > 0 && random.IntN(2) == 0 {
		at := random.IntN(len(shares))
		shares = slices.Delete(shares, at, at+1)
	}
	for range random.IntN(3) {
		shares = append(shares, &share{name: fmt.Sprintf("m%d.%d", step, len(shares)), capacity: 1 + random.IntN(80)})
	}
	for _, of := range shares {
		of.fresh = random.IntN(8) == 0
		if random.IntN(10) == 0 {
			of.capacity = random.IntN(80)
		}
	}
	return shares
}

func heldBy(shares []*share) map[string]string {
	held := map[string]string{}
	for _, of := range shares {
		for _, item := range of.items {
			held[item] = of.name
		}
	}
	return held
}

func checkParts(t *testing.T, seed uint64, items []string, shares []*share) {
	t.Helper()
	given, capacity, total := 0, 0, len(items)
	for _, of := range shares {
		given += len(of.items)
		if of.fresh {
			total -= len(of.items)
		} else {
			capacity += of.capacity
		}
		if len(of.items) > of.capacity {
			t.Fatalf("seed %d: %s has %d items, and takes %d", seed, of.name, len(of.items), of.capacity)
		}
	}
	if len(heldBy(shares)) != given {
		t.Fatalf("seed %d: an item has two members: %s", seed, wordsOf(shares))
	}
	total = min(total, capacity)
	for _, of := range shares {
		if of.fresh || capacity == 0 {
			continue
		}
		ideal, room := float64(total*of.capacity)/float64(capacity), float64(of.room(total, capacity))
		if have := float64(len(of.items)); have < ideal-room || have > ideal+room {
			t.Fatalf("seed %d: %s has %.0f items, where %.1f ± %.0f is its part: %s", seed, of.name, have, ideal, room, wordsOf(shares))
		}
	}
	if free := len(without(items, shares)); free > 0 && total < capacity && capacity > 0 {
		t.Fatalf("seed %d: %d items have no member though there is room for them: %s", seed, free, wordsOf(shares))
	}
}
