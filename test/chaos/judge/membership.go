package judge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// A memberWatch is what one watcher saw of a group.
type memberWatch struct {
	*operation

	views []*history.Event
	truth map[history.Member]*txnlog.Life
	own   map[history.Member]*operation // what members knew of themselves
	gone  map[history.Member]bool       // that it saw leave
}

// checkMembership looks at what watchers of groups saw: each view follows from the one before, shows nobody who was never
// there, misses nobody who still was, and is up to date in time.
func checkMembership(e *evidence, v *Verdict) {
	own := e.members()
	for _, o := range e.operations {
		if o.Kind != history.Watching || o.Group == "" {
			continue
		}
		w := memberWatch{o, o.all(history.Seen), e.memberLives(o.Group), own[o.Group], map[history.Member]bool{}}
		v.Views += len(w.views)
		for i, view := range w.views {
			e.checkView(v, w, i, view)
		}
		e.checkShown(v, w)
	}
}

// members is what members of each group knew of themselves.
func (e *evidence) members() map[string]map[history.Member]*operation {
	groups := map[string]map[history.Member]*operation{}
	for _, o := range e.operations {
		if joined := o.first(history.Joined); o.Kind == history.Joining && joined != nil {
			if groups[o.Group] == nil {
				groups[o.Group] = map[history.Member]*operation{}
			}
			groups[o.Group][history.Member{Name: o.Member, Incarnation: joined.Incarnation}] = o
		}
	}
	return groups
}

// memberLives is the nodes of a group's members.
func (e *evidence) memberLives(group string) map[history.Member]*txnlog.Life {
	prefix := path(e.settings.GroupRoot, group) + "/"
	lives := map[history.Member]*txnlog.Life{}
	for _, life := range e.lives {
		if len(life.Path) > len(prefix) && life.Path[:len(prefix)] == prefix {
			lives[history.Member{Name: life.Path[len(prefix):], Incarnation: life.Made.Zxid}] = life
		}
	}
	return lives
}

func (e *evidence) checkView(v *Verdict, w memberWatch, i int, view *history.Event) {
	var before []history.Member
	if i > 0 {
		before = w.views[i-1].Members
	}
	w.checkChanges(v, before, view)
	for _, member := range view.Members {
		switch life := w.truth[member]; {
		case w.gone[member]:
			v.accusef(Membership, "%s saw %+v come back that it had seen leave", w.name(), member)
		case e.log != nil && life == nil, life != nil && e.clocks.earliest(life.Made) > view.At:
			v.accusef(Membership, "%s saw %+v when there was none", w.name(), member)
		}
	}
	for _, member := range before {
		if !slices.Contains(view.Members, member) {
			w.gone[member] = true
			e.checkGone(v, w, member, view)
		}
	}
}

// checkChanges demands that a view is the one before with what joined and without what left.
func (w memberWatch) checkChanges(v *Verdict, before []history.Member, view *history.Event) {
	follows := slices.Concat(before, view.Joined)
	follows = slices.DeleteFunc(follows, func(m history.Member) bool { return slices.Contains(view.Left, m) })
	if !slices.Equal(sorted(follows), sorted(view.Members)) {
		v.accusef(Membership, "%s saw %+v, after %+v with %+v joined and %+v left", w.name(), view.Members, before, view.Joined, view.Left)
	}
}

func sorted(members []history.Member) []history.Member {
	return slices.SortedFunc(slices.Values(members), func(a, b history.Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Incarnation, b.Incarnation))
	})
}

// checkGone demands that a member that is missing in a view was gone, by the ensemble's logs and by what it knew itself.
func (e *evidence) checkGone(v *Verdict, w memberWatch, member history.Member, view *history.Event) {
	life, self := w.truth[member], w.own[member]
	there := life != nil && (!life.Gone.Happened() || e.clocks.earliest(life.Gone) > view.At)
	if there || e.log == nil && self != nil && self.isMember(view.At) {
		v.accusef(Membership, "%s saw %+v leave that was still there", w.name(), member)
	}
}

// isMember says whether a member was certainly one at an instant: it had not begun to leave, and was not told any other end.
func (o *operation) isMember(at history.Instant) bool {
	joined, end := o.first(history.Joined), o.over()
	if givenUp := o.givenUp(); givenUp != 0 {
		end = givenUp
	} else if o.first(history.Ended) != nil || o.end != 0 {
		return false // it may have been lost long before it was told
	}
	return joined.At <= at && (end == 0 || at < end)
}

// checkShown demands that a watcher sees who came and who went in time.
func (e *evidence) checkShown(v *Verdict, w memberWatch) {
	if e.log == nil || !e.recovered() {
		return
	}
	for _, member := range sorted(slices.Collect(maps.Keys(w.truth))) {
		life := w.truth[member]
		made := max(e.clocks.latest(life.Made), w.At)
		due := e.deadline(made, e.settings.Patience)
		goneBy := life.Gone.Happened() && e.clocks.earliest(life.Gone) <= due
		if !goneBy && e.watchedAt(w, due) && !w.shows(member, due) {
			v.accusef(Membership, "%s had not seen %+v come after %v", w.name(), member, due.Since(made))
		}
		if !life.Gone.Happened() {
			continue
		}
		gone := max(e.clocks.latest(life.Gone), w.At)
		if due := e.deadline(gone, e.settings.Patience); e.watchedAt(w, due) && w.shows(member, due) {
			v.accusef(Membership, "%s had not seen %+v go after %v", w.name(), member, due.Since(gone))
		}
	}
}

// watchedAt says whether the watch was open at an instant of the round. Who was killed may have been frozen before.
func (e *evidence) watchedAt(w memberWatch, at history.Instant) bool {
	over := w.over()
	return at <= e.quiet && (over == 0 || over > at) && w.end == 0
}

// shows says whether a member was in the view that the watcher had at an instant.
func (w memberWatch) shows(member history.Member, at history.Instant) bool {
	shown := false
	for _, view := range w.views {
		if view.At <= at {
			shown = slices.Contains(view.Members, member)
		}
	}
	return shown
}
