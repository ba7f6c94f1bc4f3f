package recipes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// Member is one member of a group.
type Member struct {
	About
	Name        string
	Incarnation int64         // tells it from all that have or had its name
	Age         time.Duration // by the ensemble's clock, when it was read
	Read        time.Time
	Foreign     bool   // its node's data is not in our form
	Text        string // what a foreign member wrote about itself
}

// GroupView is who is in a group, in the order of their names. Those that came or went while it was read may be missing.
type GroupView struct {
	Members   []Member
	Omitted   []string // names of members left out, in order: the view would be too large, or they may not be read
	Permanent bool     // the group stays when it has no members
}

// Omits says whether a member of this name may be there and is left out.
func (v *GroupView) Omits(name string) bool {
	_, omitted := slices.BinarySearch(v.Omitted, name)
	return omitted
}

// maxMemberName bounds, in bytes, the name of a foreign member that is shown.
const maxMemberName = 1 << 10

// size is about how many bytes a member takes in a message.
func (m Member) size() int {
	return m.sizeInMessage() + len(m.Name) + len(m.Text)
}

// View reads who is in the group. A group that is not there has an empty view.
func (g Group) View(ctx context.Context, tree Tree) (GroupView, error) {
	names, err := tree.Children(ctx, g.Path)
	if errors.Is(err, ErrNoNode) {
		return GroupView{}, nil
	}
	if err != nil {
		return GroupView{}, err
	}
	return g.view(names, func(path string) (Node, error) { return tree.Get(ctx, path) })
}

// WatchView reads as View does and returns what to wait for before the view is read again. What is watched already costs
// no request, so that one member more or less costs one or two.
func (g Group) WatchView(ctx context.Context, tree Tree) (GroupView, Changes, error) {
	names, changed, err := tree.WatchChildren(ctx, g.Path)
	if errors.Is(err, ErrNoNode) {
		return GroupView{}, Changes{changed.Done()}, nil
	}
	if err != nil {
		return GroupView{}, nil, err
	}
	var mu sync.Mutex
	changes := Changes{changed.Done()}
	view, err := g.view(names, func(path string) (Node, error) {
		node, changed, err := tree.Watch(ctx, path)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			changes = append(changes, changed.Done())
		}
		return node, err
	})
	return view, changes, err
}

// view reads the directory and, some at a time, each of its nodes, until the view has its size. read is called by many at
// once.
func (g Group) view(names []string, read func(path string) (Node, error)) (view GroupView, _ error) {
	directory, err := read(g.Path)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return GroupView{}, err
	}
	view.Permanent = err == nil && isPermanent(directory)
	names = slices.Sorted(slices.Values(names))
	size, unread := 0, names
	for some := range slices.Chunk(names, 4*readsAtOnce) {
		seen := make([]seenMember, len(some))
		err := EachOf(len(some), func(i int) (err error) {
			seen[i], err = g.see(some[i], read)
			return err
		})
		if err != nil {
			return GroupView{}, err
		}
		for i := range seen {
			size += seen[i].size()
			view.add(some[i], seen[i], size < maxViewBytes)
		}
		if unread = unread[len(some):]; size >= maxViewBytes {
			view.Omitted = append(view.Omitted, unread...)
			break
		}
	}
	return view, nil
}

// A seenMember is what has been seen of one of the directory's nodes.
type seenMember struct {
	Member
	absent bool // it is no member, or has just gone
	hidden bool // it may not be read, or not be shown
}

func (v *GroupView) add(name string, s seenMember, room bool) {
	switch {
	case s.absent:
	case s.hidden || !room:
		v.Omitted = append(v.Omitted, name)
	default:
		v.Members = append(v.Members, s.Member)
	}
}

// see reads one node. One that lives without a session is no member.
func (g Group) see(name string, read func(path string) (Node, error)) (seenMember, error) {
	if len(name) > maxMemberName || !utf8.ValidString(name) {
		return seenMember{hidden: true}, nil
	}
	node, err := read(g.member(name))
	switch {
	case errors.Is(err, ErrNoNode), err == nil && node.Owner == 0:
		return seenMember{absent: true}, nil
	case errors.Is(err, ErrDenied):
		return seenMember{hidden: true}, nil
	}
	return seenMember{Member: memberIn(name, node)}, err
}

// memberIn is what a node tells of its member.
func memberIn(name string, node Node) Member {
	member := Member{Name: name, Incarnation: node.Czxid, Age: max(0, node.Read.Sub(node.Created)), Read: node.Read}
	form, ours := decodeMember(node.Data)
	if ours {
		member.About = form.about()
		return member
	}
	member.Foreign = true
	if utf8.Valid(node.Data) {
		member.Text = clipped(string(node.Data), maxForeignText)
	}
	return member
}

// clipped is at most the first so many bytes of a text, cut between characters.
func clipped(text string, most int) string {
	text = text[:min(len(text), most)]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}

// SaysTheSame says whether both say the same about themselves.
func (m Member) SaysTheSame(other Member) bool {
	return m.Identity == other.Identity && m.Owner == other.Owner && m.Foreign == other.Foreign && m.Text == other.Text &&
		maps.Equal(m.Metadata, other.Metadata)
}
