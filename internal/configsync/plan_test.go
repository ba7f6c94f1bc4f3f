package configsync

import (
	"fmt"
	"strings"
	"testing"
)

func TestCommitsAreOfAtMost100KeysAndAMillionBytes(t *testing.T) {
	var steps []step
	for i := range 250 {
		steps = append(steps, step{key: fmt.Sprint("s", i)})
	}
	for _, size := range []int{999_990, 8, 400_000, 600_000, 1_000_000, 1} {
		steps = append(steps, step{key: "k", value: make([]byte, size)})
	}
	var sizes []string
	for _, batch := range batches(steps) {
		size := 0
		for _, step := range batch {
			size += step.size()
		}
		sizes = append(sizes, fmt.Sprintf("%d:%d", len(batch), size))
	}
	if got := strings.Join(sizes, " "); got != "100:290 100:400 50:200 2:1000000 1:400001 1:600001 1:1000001 1:2" {
		t.Error(got)
	}
}
