package service

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A groupView is a view of a group that all its watchers share. It is not modified.
type groupView struct {
	recipes.GroupView

	onWire *membershipv1.View
	at     time.Time // when onWire was made
}

// freshness is how old the ages in a shared view may be.
const freshness = time.Second

// watchedName is a group or a set that a caller watches. Each caller has a look of its own, since what is watched counts as its own.
type watchedName struct {
	name     name
	identity string
}

// lookAtGroup reads a group for its broadcast.
func (s *Services) lookAtGroup(ctx context.Context, of watchedName) (*groupView, recipes.Changes, error) {
	group := of.name
	view, changes, err := s.groupDirectory().group(group).WatchView(ctx, s.ensemble)
	if err == nil {
		err = s.watched.note(ctx, of.identity, len(changes))
	}
	if err != nil {
		return nil, nil, err
	}
	return &groupView{GroupView: view, onWire: groupViewOnWire(group, view), at: time.Now()}, changes, nil
}

// message is the view as it is now, with everybody's age.
func (g *groupView) message(group name) *membershipv1.View {
	if time.Since(g.at) < freshness {
		return g.onWire
	}
	return groupViewOnWire(group, g.GroupView)
}

func (m *membershipService) Watch(
	request *membershipv1.WatchRequest, stream grpc.ServerStreamingServer[membershipv1.WatchResponse],
) error {
	asked, err := parseName("group", request.GetGroup())
	if err != nil {
		return err
	}
	box, of, err := openWatch(request, stream, &membershipv1.WatchResponse{Keepalive: alive})
	if err != nil {
		return err
	}
	w, shared := &groupWatcher{name: asked}, m.services.groups.watch(watchedName{asked, caller.Of(stream.Context()).Identity})
	return showOn(stream, shared, m.services.drain, of, func(now shown[*groupView]) error {
		box.Put(topicPlace, func() (*membershipv1.WatchResponse, bool) { return w.compose(now) })
		return nil
	})
}

// A groupWatcher is what one Watch stream has sent last; nil before the first. Only who composes touches it.
type groupWatcher struct {
	name      name
	sent      *groupView
	sentStale bool
}

// compose says what is different from what was sent last, if anything is.
func (w *groupWatcher) compose(now shown[*groupView]) (*membershipv1.WatchResponse, bool) {
	before := w.sent
	if before == now.view && w.sentStale == now.stale {
		return nil, false
	}
	response := &membershipv1.WatchResponse{Stale: now.stale}
	same := before != nil && w.sentStale == now.stale
	if before == nil {
		before = &groupView{}
	}
	different := tellApart(before.GroupView, now.view.GroupView, response)
	w.sent, w.sentStale = now.view, now.stale
	if same && !different {
		return nil, false
	}
	response.View = now.view.message(w.name)
	return response, true
}

// mostChangeBytes bounds what a message says about changes, beside the view itself.
const mostChangeBytes = 768 << 10

// tellApart adds to the response what is different in a later view, and says whether anything is. Both are in the order of
// names. Of a member that one of the views omits, it is not known whether it came, left or changed.
func tellApart(before, after recipes.GroupView, response *membershipv1.WatchResponse) (different bool) {
	size := 0
	response.ChangesOmitted = !slices.Equal(before.Omitted, after.Omitted)
	note := func(list *[]*membershipv1.MemberReference, m recipes.Member) {
		different = true
		if size += len(m.Name) + 16; size > mostChangeBytes {
			response.ChangesOmitted = true
			return
		}
		*list = append(*list, &membershipv1.MemberReference{Member: m.Name, Incarnation: m.Incarnation})
	}
	left := func(m recipes.Member) {
		if !after.Omits(m.Name) {
			note(&response.Left, m)
		}
	}
	old := before.Members
	for _, m := range after.Members {
		for len(old) > 0 && old[0].Name < m.Name {
			left(old[0])
			old = old[1:]
		}
		switch {
		case len(old) == 0 || old[0].Name != m.Name:
			if !before.Omits(m.Name) {
				note(&response.Joined, m)
			}
			continue
		case old[0].Incarnation != m.Incarnation:
			note(&response.Left, old[0])
			note(&response.Joined, m)
		case !old[0].SaysTheSame(m):
			note(&response.Changed, m)
		}
		old = old[1:]
	}
	for _, m := range old {
		left(m)
	}
	return different || response.GetChangesOmitted() || before.Permanent != after.Permanent
}

func groupViewOnWire(of name, view recipes.GroupView) *membershipv1.View {
	onWire := &membershipv1.View{Group: of.text, MembersOmitted: int32(len(view.Omitted)), Permanent: view.Permanent}
	for _, member := range view.Members {
		onWire.Members = append(onWire.Members, &membershipv1.Member{
			Member: member.Name, Incarnation: member.Incarnation, Identity: member.Identity, Owner: member.Owner, Metadata: member.Metadata,
			Age: durationpb.New(member.Age + time.Since(member.Read)), Foreign: member.Foreign, Text: member.Text,
		})
	}
	return onWire
}
