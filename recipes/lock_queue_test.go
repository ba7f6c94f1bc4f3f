package recipes

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// line writes contenders as "m5 r6 w7": mode and sequence number.
func line(q queue) string {
	var words []string
	for _, c := range q {
		words = append(words, fmt.Sprintf("%c%d", "mrw"[c.mode], c.sequence))
	}
	return strings.Join(words, " ")
}

// standing makes a shuffled list of children of such a line.
func standing(text string) []string {
	var names []string
	for i, word := range strings.Fields(text) {
		var number int32
		fmt.Sscan(word[1:], &number)
		names = append(names, fmt.Sprintf("_c_%036d%s%010d", i, modeOf(word[0]).marker(), number))
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

func modeOf(letter byte) Mode { return Mode(strings.IndexByte("mrw", letter)) }

func TestTheOrderIsThatOfTheNumbersUntilTheCounterEnds(t *testing.T) {
	for _, want := range []string{"", "m0", "m0 m1 m2", "m9 m10 m100", "m1 m2147483646", "w3 r3 r4"} {
		contenders, _ := Lock{}.readQueue(standing(want))
		if got := line(contenders.inOrder()); got != want || !contenders.numbersTell() {
			t.Errorf("%s is in order as %s, numbers tell: %v", want, got, contenders.numbersTell())
		}
	}
}

func TestWhereTheCounterEndsTheOrderIsThatOfTheTransactions(t *testing.T) {
	for _, want := range []string{
		"m2147483647", "m2147483646 m2147483647 m-2147483648 m-2147483647", "m-1 m0 m1",
		"m2147483647 m-2147483648 m2147483647 m-2147483648", "w2147483647 r2147483647", "r2147483647 w2147483647 r-2147483648",
	} {
		contenders, _ := Lock{}.readQueue(standing(want))
		if contenders.numbersTell() {
			t.Errorf("numbers tell the order of %s", want)
		}
		dates, err := contenders.dates(func(c child) (Node, error) {
			var place int64
			_, err := fmt.Sscanf(c.name, "_c_%d-", &place)
			return Node{Czxid: place + 1}, err
		})
		ordered := contenders.dated(dates).inOrder()
		if got := line(ordered); got != want || err != nil {
			t.Errorf("%s is in order as %s, %v", want, got, err)
		}
		if got := line(ordered.holders()); got != strings.Fields(want)[0] {
			t.Errorf("of %s, %s hold", want, got)
		}
	}
}

func TestOnlyEarlierPlacesAreAhead(t *testing.T) {
	for _, test := range []struct{ line, own, want string }{
		{"m1 m2 m3 m4", "m3", "m1 m2"},
		{"m1", "m1", ""},
		{"w3 r3 w5", "w5", "w3 r3"},
		{"w3 r3 w5", "w3", ""},
		{"w3 r3 w5", "r3", ""},
	} {
		contenders, _ := Lock{}.readQueue(standing(test.line))
		contenders.inOrder()
		for _, own := range contenders {
			if ahead, ok := contenders.aheadOf(own.name); line(queue{own}) == test.own && (!ok || line(ahead) != test.want) {
				t.Errorf("%s: ahead of %s is %q, not %q", test.line, test.own, line(ahead), test.want)
			}
		}
		if _, ok := contenders.aheadOf("nobody"); ok {
			t.Error("nobody is in the queue")
		}
	}
}

func TestEachModeWaitsForWhomItMust(t *testing.T) {
	for _, test := range []struct{ ahead, mode, want string }{
		{"m1 m2", "m", "m1 m2"},
		{"r1 w2 r3", "r", "w2"},
		{"r1 w2 r3", "w", "r1 w2 r3"},
		{"r1 r2", "r", ""},
		{"r1 r2", "w", "r1 r2"},
		{"w3 r3", "w", "w3 r3"},
	} {
		ahead, _ := Lock{}.readQueue(standing(test.ahead))
		if got := line(ahead.inOrder().blocking(modeOf(test.mode[0]))); got != test.want {
			t.Errorf("behind %s, %s waits for %q, not %q", test.ahead, test.mode, got, test.want)
		}
	}
}

func TestTheFrontOfTheQueueHolds(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "m1 m2": "m1", "w1 r2": "w1", "r1 r2 w3 r4": "r1 r2", "w3 r3 r4": "w3 r3", "r3 r4 w5": "r3 r4",
		"m1 r2": "m1", "r1 m2 r3": "r1",
	} {
		contenders, _ := Lock{}.readQueue(standing(text))
		if got := line(contenders.inOrder().holders()); got != want {
			t.Errorf("of %q, %q hold, not %q", text, got, want)
		}
	}
}

func TestForeignChildrenAreCountedAndNotMinded(t *testing.T) {
	names := append(standing("m1 m2"), "", "x", "_c_x", "\xff\xfe")
	for i := range 5000 {
		names = append(names, fmt.Sprintf("stranger-%010d", i))
	}
	contenders, foreignChildren := Lock{}.readQueue(names)
	if got := line(contenders.inOrder()); got != "m1 m2" || foreignChildren != 5004 {
		t.Errorf("%s and %d foreignChildren", got, foreignChildren)
	}
}
