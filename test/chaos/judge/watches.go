package judge

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// A keyWatch is what one watcher of the configuration was told.
type keyWatch struct {
	*operation
	*evidence

	verdict *Verdict
	told    map[string]history.Change // of each key, the last; not there: nothing, or that it was deleted
	newest  map[string]int64          // revision told of each key
	synced  bool
	lagging bool
}

// checkWatches looks at what watchers of the configuration were told, message by message.
func checkWatches(e *evidence, v *Verdict) {
	for _, o := range e.operations {
		if o.Kind != history.Watching || o.Group != "" {
			continue
		}
		w := &keyWatch{operation: o, evidence: e, verdict: v, told: map[string]history.Change{}, newest: map[string]int64{}}
		for _, event := range o.later {
			w.take(event)
		}
		w.checkConverged()
	}
}

func (w *keyWatch) accusef(format string, arguments ...any) {
	w.verdict.accusef(Watches, w.name()+" "+format, arguments...)
}

func (w *keyWatch) take(event *history.Event) {
	w.verdict.Views++
	switch event.Kind {
	case history.State, history.Changed:
		if w.synced != (event.Kind == history.Changed) {
			w.accusef("was told of %s when it was synced: %v", event.Kind, w.synced)
		}
		for _, change := range event.Changes {
			w.takeChange(event, change)
		}
	case history.Synced:
		if w.synced {
			w.accusef("was told twice that it was synced")
		}
		w.synced = true
	case history.Lagging:
		w.lagging = true
	case history.Fresh:
		if !w.lagging {
			w.accusef("was told that it is up to date again, and never that it was not")
		}
		w.lagging = false
	}
}

func (w *keyWatch) takeChange(event *history.Event, change history.Change) {
	before, known := w.told[change.Key]
	switch {
	case !w.watches(change.Key):
		w.accusef("was told of %s, for which it had not asked", change.Key)
	case change.Deleted && !known:
		w.accusef("was told that %s was deleted, of which it knew nothing", change.Key)
	case change.Deleted:
		w.checkDeletion(event, before)
		delete(w.told, change.Key)
	default:
		w.checkOrder(change, before, known)
		w.checkMarks(event, change, before, known)
		w.checkExistence(event, change)
		w.told[change.Key] = change
		w.newest[change.Key] = max(w.newest[change.Key], change.Revision)
	}
}

// watches says whether a key was asked for.
func (w *keyWatch) watches(key string) bool {
	if len(w.Keys) > 0 {
		return slices.Contains(w.Keys, key)
	}
	return w.Prefix == "" || key == w.Prefix || strings.HasPrefix(key, w.Prefix+"/")
}

// checkOrder demands that nothing is told twice, and nothing older after something newer.
func (w *keyWatch) checkOrder(change, before history.Change, known bool) {
	newest := w.newest[change.Key]
	switch {
	case change.Revision == newest:
		w.accusef("was told twice of revision %d of %s", newest, change.Key)
	case change.Revision < newest:
		w.accusef("was told of revision %d of %s after %d", change.Revision, change.Key, newest)
	case known && change.Created == before.Created && change.Version <= before.Version:
		w.accusef("was told of version %d of %s after %d", change.Version, change.Key, before.Version)
	}
}

// checkMarks demands that a gap is told, and only a gap is.
func (w *keyWatch) checkMarks(event *history.Event, change, before history.Change, known bool) {
	if event.Kind == history.State {
		if change.Coalesced || change.Recreated {
			w.accusef("was told of gaps in the state of %s at the beginning", change.Key)
		}
		return
	}
	recreated := known && before.Created != change.Created
	told := int32(0)
	if known && !recreated {
		told = before.Version
	}
	if coalesced := change.Version-told > 1; coalesced != change.Coalesced {
		w.accusef("was told of version %d of %s after %d: coalesced %v", change.Version, change.Key, told, change.Coalesced)
	}
	if recreated != change.Recreated {
		w.accusef("was told of %s, made by %d, after %d: recreated %v", change.Key, change.Created, before.Created, change.Recreated)
	}
}

// checkExistence demands that what is told was there, and not only later. A key is made in one transaction that writes twice,
// of which the second counts.
func (w *keyWatch) checkExistence(event *history.Event, change history.Change) {
	if w.log == nil {
		return
	}
	for _, life := range w.keyLives()[change.Key] {
		for i, write := range life.Writes {
			if write.Zxid != change.Revision || i+1 < len(life.Writes) && life.Writes[i+1].Zxid == write.Zxid {
				continue
			}
			same := string(write.Data) == change.Value && write.Version == change.Version && life.Made.Zxid == change.Created
			if !same || w.clocks.earliest(write.Stamp) > event.At {
				w.accusef("was told %+v of %s, which is not what revision %d wrote by then", change, change.Key, change.Revision)
			}
			return
		}
	}
	w.accusef("was told of revision %d of %s, which nobody wrote", change.Revision, change.Key)
}

// checkDeletion demands that a key that is told to be deleted was.
func (w *keyWatch) checkDeletion(event *history.Event, before history.Change) {
	for _, life := range w.keyLives()[before.Key] {
		if life.Made.Zxid == before.Created && (!life.Gone.Happened() || w.clocks.earliest(life.Gone) > event.At) {
			w.accusef("was told that %s was deleted, which was there", before.Key)
		}
	}
}

// checkConverged demands that a watcher knows at its end what had become of each key by then, save for what there was no
// time to tell. A watcher that goes on is looked at when the round is quiet.
func (w *keyWatch) checkConverged() {
	end := cmp.Or(w.over(), w.quiet)
	if w.log == nil || !w.recovered() || !w.synced || end > w.quiet || w.end != 0 {
		return
	}
	lives := w.keyLives()
	for _, key := range slices.Sorted(maps.Keys(lives)) {
		if !w.watches(key) {
			continue
		}
		told, known := w.told[key]
		due, stored := w.due(lives[key], end)
		switch {
		case due == 0:
		case known && told.Revision < due:
			w.accusef("ended up with revision %d of %s, of which there was %d", told.Revision, key, due)
		case !known && stored && !w.deletedSince(lives[key], due):
			w.accusef("ended up without %s, of which there was revision %d", key, due)
		}
	}
}

// due is the last change of a key that the watcher must have been told of by the end, and whether there was the key then.
func (w *keyWatch) due(lives []*txnlog.Life, end history.Instant) (zxid int64, stored bool) {
	inTime := func(s txnlog.Stamp) bool {
		return s.Zxid > zxid && w.deadline(max(w.clocks.latest(s), w.At), w.settings.Patience) <= end
	}
	for _, life := range lives {
		isKey := false
		for _, write := range life.Writes {
			if isKey = write.Version > 0; isKey && inTime(write.Stamp) {
				zxid, stored = write.Zxid, true
			}
		}
		if isKey && life.Gone.Happened() && inTime(life.Gone) {
			zxid, stored = life.Gone.Zxid, false
		}
	}
	return zxid, stored
}

// deletedSince says whether the key was deleted after a transaction: the watcher may know that already.
func (w *keyWatch) deletedSince(lives []*txnlog.Life, zxid int64) bool {
	return slices.ContainsFunc(lives, func(life *txnlog.Life) bool { return life.Gone.Zxid > zxid })
}
