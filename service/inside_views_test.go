// It looks inside: what is told of two views is a table of them, and no ensemble makes each pair.

package service

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

func TestAToldViewIsNewsWhenItOrItsBeingStaleChanges(t *testing.T) {
	t.Parallel()
	var told toldView
	empty, full := &lockv1.View{}, &lockv1.View{Name: "orders"}
	for _, step := range []struct {
		view  proto.Message
		stale bool
		news  bool
	}{
		{empty, true, true}, {empty, true, false}, {empty, false, true}, {full, false, true}, {full, true, true}, {full, true, false},
	} {
		same(t, "news", told.isNews(step.view, step.stale), step.news)
	}
}

func TestNoSmallerTokenIsToldAfterALargerOne(t *testing.T) {
	t.Parallel()
	var of lockToken
	for _, step := range []struct {
		token int64
		stale bool
		want  tokenShown
	}{
		{3, false, tokenShown{3, false}},
		{5, false, tokenShown{5, false}},
		{3, false, tokenShown{5, true}}, // by a server that is behind
		{5, false, tokenShown{5, false}},
		{0, false, tokenShown{0, false}},
		{3, false, tokenShown{0, true}},
		{7, true, tokenShown{7, true}},
	} {
		of.learn(step.token, step.stale)
		same(t, fmt.Sprint("after ", step.token), *of.known, step.want)
	}
}

func TestWhatChangedIsToldApart(t *testing.T) {
	t.Parallel()
	member := func(name string, incarnation int64, port string) recipes.Member {
		return recipes.Member{Name: name, Incarnation: incarnation, About: recipes.About{Metadata: map[string]string{"port": port}}}
	}
	view := func(members ...recipes.Member) recipes.GroupView { return recipes.GroupView{Members: members} }
	omitting := func(view recipes.GroupView, names ...string) recipes.GroupView {
		view.Omitted = names
		return view
	}
	a, b, c := member("a", 1, "1"), member("b", 2, "1"), member("c", 3, "1")
	for _, test := range []struct {
		before, after recipes.GroupView
		want          string
	}{
		{view(), view(), "false"},
		{view(a, b), view(a, b), "false"},
		{view(), view(a, b), "true +a1 +b2"},
		{view(a, b, c), view(b), "true -a1 -c3"},
		{view(b), view(a, c), "true -b2 +a1 +c3"},
		{view(a, b), view(member("a", 4, "1"), b), "true -a1 +a4"},
		{view(a, b), view(a, member("b", 2, "2")), "true ~b2"},
		{view(a), omitting(view(a), "b"), "true …"},
		{omitting(view(a), "b"), omitting(view(a), "b"), "false"},
		{view(a, c), omitting(view(a, b), "c"), "true +b2 …"},
		{omitting(view(a, b), "c"), view(a, c), "true -b2 …"},
		{omitting(view(b), "c"), omitting(view(a), "b", "c"), "true +a1 …"},
		{omitting(view(a), "b"), omitting(view(a), "c"), "true …"},
		{view(a), recipes.GroupView{Members: []recipes.Member{a}, Permanent: true}, "true"},
	} {
		var response membershipv1.WatchResponse
		words := strconv.FormatBool(tellApart(test.before, test.after, &response))
		for i, list := range [][]*membershipv1.MemberReference{response.GetLeft(), response.GetJoined(), response.GetChanged()} {
			for _, reference := range list {
				words += fmt.Sprint(" ", string("-+~"[i]), reference.GetMember(), reference.GetIncarnation())
			}
		}
		if response.GetChangesOmitted() {
			words += " …"
		}
		same(t, "difference", words, test.want)
	}
}

func TestChangesWithoutRoomAreLeftOutAndTheViewIsWhole(t *testing.T) {
	t.Parallel()
	var many []recipes.Member
	for i := range 20000 {
		many = append(many, recipes.Member{Name: fmt.Sprintf("%s%05d", strings.Repeat("x", 50), i)})
	}
	var response membershipv1.WatchResponse
	tellApart(recipes.GroupView{}, recipes.GroupView{Members: many}, &response)
	if told := len(response.GetJoined()); !response.GetChangesOmitted() || told == 0 || told == len(many) {
		t.Errorf("%d are told, omitted %t", told, response.GetChangesOmitted())
	}
}

func TestNoEarlierTermIsShownAfterALaterOne(t *testing.T) {
	t.Parallel()
	of := observation{of: name{"orders"}}
	for _, step := range []struct {
		term  int64
		stale bool
		want  string
	}{
		{0, true, "stale"},
		{3, false, "in term 3:"},
		{3, false, ""},
		{5, false, "in term 5:"},
		{3, false, "stale"}, // by a server that is behind
		{3, false, ""},
		{5, false, "in term 5:"},
		{0, false, "vacant"},
		{3, false, "stale"},
		{7, true, ""},
		{7, false, "in term 7:"},
	} {
		now := shown[*lockView]{view: &lockView{}, stale: step.stale}
		if step.term != 0 {
			now.view.Holders = []recipes.Contender{{Token: step.term}}
		}
		got := ""
		if news := of.learn(now); news != nil {
			got = expect.Leader(news)
		}
		same(t, fmt.Sprint("after ", step.term), got, step.want)
	}
}

func TestNewsOfAKey(t *testing.T) {
	t.Parallel()
	entry := func(created int64, version int32) *recipes.Entry {
		return &recipes.Entry{Key: "k", Created: created, Version: version}
	}
	for _, c := range []struct {
		name          string
		before, after *recipes.Entry
		want          string
	}{
		{"a new key", nil, entry(1, 1), "k=@v1"},
		{"a new key, written twice", nil, entry(1, 2), "k=@v2 coalesced"},
		{"a new key of somebody else", nil, entry(1, 0), "k=@v0"},
		{"the next version", entry(1, 4), entry(1, 5), "k=@v5"},
		{"a later version", entry(1, 4), entry(1, 6), "k=@v6 coalesced"},
		{"another key", entry(1, 4), entry(2, 1), "k=@v1 recreated"},
		{"another key, written twice", entry(1, 4), entry(2, 2), "k=@v2 recreated coalesced"},
		{"no key any more", entry(1, 4), nil, "-k"},
	} {
		change := (&keyNews{c.before, c.after}).onWire("k", true)
		same(t, c.name, expect.Change(change), c.want)
	}
	if change := (&keyNews{}).onWire("k", true); change != nil {
		t.Error("a key that came and went is told of")
	}
}
