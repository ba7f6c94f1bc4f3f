package recipes

import "testing"

func TestAWriteNeverLeavesAVersionThatMeansAny(t *testing.T) {
	for _, version := range []int32{-3, -2, 0, 1 << 30} {
		left := version
		for _, change := range (Sequence{Path: "/s"}).changes(sequenceState{guard: "_i_", version: version}, 1) {
			if change.Kind == KindCheck {
				continue
			}
			if change.Version != left {
				t.Errorf("from %d: %d is written over %d", version, change.Version, left)
			}
			left++
		}
		if left == -1 {
			t.Errorf("from %d: left at −1", version)
		}
	}
}
