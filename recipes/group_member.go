package recipes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
)

// maxForeignText bounds, in bytes, what is shown of what a foreign member wrote about itself.
const maxForeignText = 1 << 10

// maxEndText bounds, in bytes, what is told of who asks for a member's end and why.
const maxEndText = 256

// maxMemberData is longer than what we ever write: anything longer is not ours.
const maxMemberData = 16 << 10

// memberForm is the data of our members' nodes.
type memberForm struct {
	aboutForm

	End *endRequest `json:"end,omitempty"`
}

// endRequest asks a member's sidecar to end it.
type endRequest struct {
	Replaced bool   `json:"replaced,omitempty"` // otherwise it is removed
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// decodeMember reads a node's data, if it is in our form.
func decodeMember(data []byte) (form memberForm, ours bool) {
	if len(data) > maxMemberData || json.Unmarshal(data, &form) != nil || form.Form < currentForm {
		return memberForm{}, false
	}
	return form, true
}

// A Membership is a member of ours, from Join until it has left or was removed. Its calls are for any goroutine, but Look
// is for one.
type Membership struct {
	Incarnation int64 // tells it from all that have or had its name

	group    Group
	name     string
	about    About // as it joined, with the metadata of the newest update
	session  MemberSession
	gone     *Signal
	updating sync.Mutex
	version  int32       // of the node's data as the newest update has left them
	end      *endRequest // that stands in them
	leave    sync.Once
	seen     bool // the tree has shown the node
}

// Join makes a member with the session. It cannot be cancelled: a create given up half-way could leave a member that
// no caller knows of. The caller must Leave. ErrMemberExists if the group has a member of this name. A *GuardLost says that the place of a
// guard is gone: then there is no member.
func (g Group) Join(ctx context.Context, session MemberSession, name string, about About, guards ...Guard) (*Membership, error) {
	node, gone, err := session.Create(ctx, g.member(name), about.encode(), guards...)
	if errors.Is(err, ErrExists) {
		return nil, ErrMemberExists
	}
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", name, err)
	}
	return &Membership{
		Incarnation: node.Czxid, group: g, name: name, about: about, session: session, gone: gone, version: node.Version,
	}, nil
}

// Rejoin takes a member again that stood when a process came back to its session. ErrRemoved or ErrReplaced if its end was asked for
// meanwhile; then, and with any other error, it goes with the session, unless the caller deletes it.
func (g Group) Rejoin(session Adopter, standing Standing, name string, about About) (*Membership, error) {
	if standing.Path != g.member(name) {
		return nil, ErrRemoved
	}
	form, ours := decodeMember(standing.Node.Data)
	if end := memberStateIn(standing.Node.Data).End; end != nil {
		return nil, end
	}
	if ours {
		about.Metadata = form.Metadata // of the newest update
	}
	gone, err := session.Adopt(standing, true)
	if err != nil {
		return nil, err
	}
	return &Membership{
		Incarnation: standing.Node.Czxid, group: g, name: name, about: about, session: session, gone: gone, version: standing.Node.Version,
	}, nil
}

// RequestIn is what the node's contender or member is on the stream of its lease; 0 if its data do not say so.
func RequestIn(node Node) uint64 {
	about, _ := aboutIn(node.Data)
	return about.Request
}

// A MemberState is what a member's node says of it.
type MemberState struct {
	Metadata map[string]string
	End      error  // ErrReplaced or ErrRemoved if another caller asks for the member's end; else nil
	By       string // who asks, if that is known
	Reason   string // in the words of who asks
}

// Look reads the member's node. The signal is given when it is worth to look again. ErrRemoved if another program has
// deleted the node; other errors are those of the session, and say nothing about the member.
func (m *Membership) Look(ctx context.Context) (MemberState, *Signal, error) {
	own, changed, seen, err := m.session.WatchOwn(ctx, m.path())
	if !m.seen && (errors.Is(err, ErrNoNode) || err == nil && own.Czxid < m.Incarnation) { // perhaps the reader is late
		if err := m.session.CatchUp(ctx); err != nil {
			return MemberState{}, nil, err
		}
		own, changed, seen, err = m.session.WatchOwn(ctx, m.path())
	}
	switch {
	case errors.Is(err, ErrNoNode), err == nil && own.Czxid != m.Incarnation:
		return MemberState{}, nil, ErrRemoved
	case err != nil:
		return MemberState{}, nil, err
	}
	m.seen = true
	if _, ours := decodeMember(own.Data); !ours {
		return m.restore(ctx)
	}
	standing := memberStateIn(own.Data)
	if standing.End == nil {
		seen()
	}
	return standing, changed, nil
}

// restore says again what the member's node said, which another program has overwritten with what is not in our form: a sidecar that asks for
// the member's end asks in our form only, and must know of the session's timeout. Nothing that does not tell it counts as seen.
func (m *Membership) restore(ctx context.Context) (MemberState, *Signal, error) {
	m.updating.Lock()
	_, err := m.catchUp(ctx)
	if err == nil {
		err = m.update(ctx, m.about)
	}
	m.updating.Unlock()
	if err != nil && !errors.Is(err, ErrBadVersion) && !errors.Is(err, ErrNoNode) {
		return MemberState{}, nil, err
	}
	if err := m.session.CatchUp(ctx); err != nil {
		return MemberState{}, nil, err
	}
	return m.Look(ctx)
}

// memberStateIn reads a member's data. What others have made of it may say nothing.
func memberStateIn(data []byte) MemberState {
	form, _ := decodeMember(data)
	standing := MemberState{Metadata: form.Metadata}
	if form.End != nil {
		standing.End = ErrRemoved
		standing.By, standing.Reason = clipped(form.End.By, maxEndText), clipped(form.End.Reason, maxEndText)
		if form.End.Replaced {
			standing.End = ErrReplaced
		}
	}
	return standing
}

// Update replaces the member's metadata. It cannot be cancelled. ErrNoMember if the member was removed. A request for its end
// stays. A *GuardLost says that the place of a guard is gone: then the metadata is as it was.
func (m *Membership) Update(ctx context.Context, metadata map[string]string, guards ...Guard) error {
	m.updating.Lock()
	defer m.updating.Unlock()
	ctx = context.WithoutCancel(ctx)
	about := m.about
	about.Metadata = metadata
	err := m.update(ctx, about, guards...)
	for errors.Is(err, ErrBadVersion) {
		said, failure := m.catchUp(ctx)
		switch err = failure; {
		case err != nil:
		case maps.Equal(said, metadata) && !maps.Equal(said, m.about.Metadata): // no other program writes that: the reply was lost
		default:
			err = m.update(ctx, about, guards...)
		}
	}
	if errors.Is(err, ErrNoNode) {
		return ErrNoMember
	}
	if err == nil {
		m.about = about
	}
	return err
}

// Metadata is what the member says of itself, as far as this process has written it.
func (m *Membership) Metadata() map[string]string {
	m.updating.Lock()
	defer m.updating.Unlock()
	return m.about.Metadata
}

// update writes on top of what is known to be there.
func (m *Membership) update(ctx context.Context, about About, guards ...Guard) error {
	form := memberForm{aboutForm: about.form()}
	form.End = m.end
	node, err := m.session.Update(ctx, m.path(), encode(form), m.version, guards...)
	if err != nil {
		return err
	}
	m.version = node.Version
	if m.end == nil {
		m.session.Seen(m.path(), node.Version)
	}
	return nil
}

// catchUp finds out what another program has written, or an update whose reply was lost, and returns the metadata that is there.
func (m *Membership) catchUp(ctx context.Context) (said map[string]string, _ error) {
	if err := m.session.CatchUp(ctx); err != nil {
		return nil, err
	}
	own, err := m.session.Get(ctx, m.path())
	if err == nil && own.Czxid != m.Incarnation {
		err = ErrNoNode
	}
	if err != nil {
		return nil, err
	}
	form, _ := decodeMember(own.Data)
	m.version, m.end = own.Version, form.End
	return form.Metadata, nil
}

// Disregard says that no caller counts on the member any more, though it is kept for a while.
func (m *Membership) Disregard() { m.session.Disregard(m.path()) }

// Leave takes the member out of the group, and returns when its node or the session is gone. It cannot be cancelled, since
// it is done for callers that have gone themselves. Later calls wait for the first.
func (m *Membership) Leave(ctx context.Context) {
	m.leave.Do(func() { m.session.Delete(ctx, m.path()) })
}

// Gone is given when the session finds that another program deleted the member's node. Look finds it sooner.
func (m *Membership) Gone() *Signal { return m.gone }

func (m *Membership) path() string { return m.group.member(m.name) }
