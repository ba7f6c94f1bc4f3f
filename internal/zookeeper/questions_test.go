package zookeeper

import "testing"

// Questions come out in the order in which they were asked, and their room is used again.
func TestQuestionsAreAnsweredInTheirOrder(t *testing.T) {
	t.Parallel()
	var under questions
	asked, answered := int32(0), int32(0)
	for _, step := range []int{1, -1, 3, -2, 5, -1, 7, -12, 40, -39, 100, -1, 50, -150} {
		for range max(step, 0) {
			under.add(question{xid: asked})
			asked++
		}
		for range max(-step, 0) {
			oldest, ok := under.oldest()
			if !ok || oldest.xid != answered {
				t.Fatalf("got %d, %v, want %d", oldest.xid, ok, answered)
			}
			under.drop()
			answered++
		}
		if under := len(under.all()); under != int(asked-answered) {
			t.Fatalf("%d are under way, want %d", under, asked-answered)
		}
	}
	if _, ok := under.oldest(); ok {
		t.Error("there is a question where all were answered")
	}
	var one questions
	one.add(question{xid: asked})
	for range 1000 {
		one.add(question{xid: asked})
		one.drop()
	}
	if room := cap(one.list); room > 8 {
		t.Errorf("room for %d questions, of which one is under way", room)
	}
}
