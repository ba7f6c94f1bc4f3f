package recipes

import (
	"slices"
	"testing"
)

// A list of children is shared by all who watch them.
func TestAViewLeavesTheListOfItsMembersAsItIs(t *testing.T) {
	names := []string{"web-3", "web-1", "web-2"}
	if _, err := (Group{Path: "/groups/web"}).view(names, func(string) (Node, error) { return Node{}, ErrNoNode }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"web-3", "web-1", "web-2"}; !slices.Equal(names, want) {
		t.Errorf("the list is %q now, was %q", names, want)
	}
}
