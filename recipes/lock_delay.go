package recipes

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MaxLockDelay is the longest delay that a hold may have.
const MaxLockDelay = time.Minute

// A hold may have a delay, for resources that can compare nothing: when it ends otherwise than by its holder's own hand, no contender is granted
// the lock before the delay is over, in which what the holder has sent before arrives.
//
// Before the grant, a transaction that checks the place writes `held:TOKEN:MILLISECONDS` into the lock's directory. A holder that lets go by
// itself has `free:TOKEN` written there in the transaction that deletes its place. The contender whose turn it is reads that when all ahead have
// gone, and if another's `held` stands there, waits. It counts from when it has seen the place gone, which is later than the end of
// the place, by its own clock, which may be fast by a hundredth and stands still while the machine is suspended: neither makes the delay
// shorter. A contender that takes over from one that has waited goes on from there if both are of one process (Losses), and counts anew
// otherwise. So a caller that only tries is granted the lock at last. Then it writes what is true of itself, again checking its place. As all
// of these writes check a place that excludes all other writers, or delete it, none is carried out after a later one, however late it comes.
//
// A contender that asks for no delay pays nothing where there is none: the list that comes with its place tells whether the directory has data,
// and the names in it which of those ahead may write some later (delayMark).
//
// The directory must outlive those in it. So a contender that asks for a delay first makes it a node that stays (Keep). Only Keep writes the
// keptMark before the token, and each later write retains it. A container may hold the rest of the data, and nothing else tells the two apart.
// A directory that others stand in cannot be replaced, and goes some time after the last of them, unless a Keep finds it empty before.

// delayMark stands in the names of places that have a delay.
const delayMark = "-delay"

// keptMark stands before the token where the directory stays. It is a sign, so that the version before reads the same number.
const keptMark = "+"

// mostLosses bounds what a process remembers. All delays are counted anew beyond that.
const mostLosses = 10000

// Losses is when a process has first seen holds gone after which there is a delay. Its zero value is ready for use, from any goroutine.
type Losses struct {
	mu   sync.Mutex
	seen map[string]loss // by the lock's path: the newest
}

type loss struct {
	token int64 // which no other hold ever has
	since time.Time
}

// since is when this hold was first seen gone: now, if it was not before.
func (l *Losses) since(lock string, token int64) time.Time {
	now := time.Now()
	if l == nil {
		return now
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.seen[lock]; ok && known.token == token {
		return known.since
	}
	if l.seen == nil || len(l.seen) >= mostLosses {
		l.seen = map[string]loss{}
	}
	l.seen[lock] = loss{token, now}
	return now
}

// delayState is what a lock's directory says.
type delayState struct {
	token int64         // of the hold
	delay time.Duration // after it; 0 if its holder has let go by itself, or has none
	kept  bool          // the directory stays, since Keep has made it
}

func (d delayState) encode() []byte {
	mark := ""
	if d.kept {
		mark = keptMark
	}
	if d.delay == 0 {
		return fmt.Appendf(nil, "free:%s%d", mark, d.token)
	}
	return fmt.Appendf(nil, "held:%s%d:%d", mark, d.token, d.delay.Milliseconds())
}

// delayStateIn reads a directory's data; zero if they are not in our form.
func delayStateIn(data []byte) (state delayState) {
	word, rest, _ := strings.Cut(string(data), ":")
	text, milliseconds, held := strings.Cut(rest, ":")
	text, state.kept = strings.CutPrefix(text, keptMark)
	token, err := strconv.ParseInt(text, 10, 64)
	if err != nil || word != "held" && word != "free" || held != (word == "held") {
		return delayState{}
	}
	if held {
		number, err := strconv.ParseInt(milliseconds, 10, 64)
		if err != nil || number <= 0 {
			return delayState{}
		}
		state.delay = time.Duration(min(number, MaxLockDelay.Milliseconds())) * time.Millisecond
	}
	state.token = token
	return state
}

// Keep has the lock's directory stay when no contender is in it, unless others are in it that was not made so.
func (l Lock) Keep(ctx context.Context, store Store) (err error) {
	for range maxAttempts {
		var directory Node
		if directory, err = store.Get(ctx, l.Path); err == nil && IsKept(directory) {
			return nil
		}
		err = l.keepOnce(ctx, store)
		switch {
		case err == nil, errors.Is(err, ErrNotEmpty):
			return nil
		case !isMoved(err) && !errors.Is(err, ErrOutcomeUnknown):
			return err
		}
		if err := store.CatchUp(ctx); err != nil {
			return unsent(err)
		}
	}
	return unsent(err)
}

// IsKept says whether a lock's directory stays since Keep has made it so.
func IsKept(directory Node) bool {
	return delayStateIn(directory.Data).kept
}

// keepOnce takes one step towards a directory that stays. What an empty container says of a lost hold goes on in its place.
func (l Lock) keepOnce(ctx context.Context, store Store) error {
	create := Create(l.Path, delayState{kept: true}.encode())
	_, err := store.Commit(ctx, create)
	switch {
	case errors.Is(err, ErrNoNode):
		if err := store.MakeDirectory(ctx, path.Dir(l.Path)); err != nil {
			return err
		}
		_, err = store.Commit(ctx, create)
		return err
	case !errors.Is(err, ErrExists):
		return err
	}
	directory, err := Group{l.Path}.directory(ctx, store)
	if err != nil {
		return err
	}
	state := delayStateIn(directory.Data)
	if state.kept {
		return nil
	}
	state.kept = true
	_, err = store.Commit(ctx, replaced(l.Path, directory.Version, state.encode())...)
	return err
}

// mostPassed bounds how often a new node is written so that its version passes that of the one before it.
const mostPassed = 16

// replaced makes a node anew in place of an empty one of this version. The new version is larger: a replacement that comes late does not take
// the new node for the old one.
func replaced(node string, version int32, data []byte) []Change {
	changes := []Change{Delete(node, version), Create(node, data)}
	for range min(version+1, mostPassed) {
		changes = append(changes, Set(node, data, -1))
	}
	return changes
}

// A delayed is what a place knows of delays.
type delayed struct {
	own     time.Duration // after its own hold
	known   bool          // the list that came with the place has told whether there may be another's
	any     bool          // there may be
	waits   delayState    // whose delay it waits for
	since   time.Time     // when it has seen that one gone
	written bool          // the directory may say of it what takes a clean end to take back
	kept    bool          // the directory stays
	token   int64         // its own
}

// learn takes in what a list of the queue tells of those ahead. The list that came with the place also tells of the directory's data; with
// another they are read, behind it.
func (p *Place) learnOfDelays(ctx context.Context, ahead queue) error {
	for _, c := range ahead {
		p.delayed.any = p.delayed.any || c.delayed
	}
	if p.delayed.known {
		return nil
	}
	directory, err := p.session.Get(ctx, p.lock.Path)
	if err == nil {
		p.delayed.known, p.delayed.any = true, p.delayed.any || len(directory.Data) > 0
	}
	return err
}

// OutwaitDelay says of a place whose turn it is for how long it must wait yet, since the last hold has ended otherwise than by its holder's
// hand; 0 if it may be granted. Errors as of Look.
func (p *Place) OutwaitDelay(ctx context.Context, store Store) (left time.Duration, _ error) {
	if p.delayed.own == 0 && !p.delayed.any {
		return 0, nil
	}
	own, _, err := p.watchOwn(ctx)
	if err != nil {
		return 0, err
	}
	p.delayed.token = own.Czxid
	for {
		if err := store.CatchUp(ctx); err != nil { // the reader may show the end of a place before what was written while it stood
			return 0, unsent(err)
		}
		directory, err := store.Get(ctx, p.lock.Path)
		if err != nil {
			return 0, orGone(err)
		}
		state := delayStateIn(directory.Data)
		if left := p.delayed.left(state, p.lock); left > 0 {
			return left, nil
		}
		if err = p.say(ctx, store, state); !errors.Is(err, ErrOutcomeUnknown) {
			return 0, orGone(err)
		}
	}
}

// left is how much of the delay of the hold that the directory tells of is left.
func (d *delayed) left(state delayState, of Lock) time.Duration {
	if state.delay == 0 || state.token == d.token {
		return 0
	}
	if d.waits.token != state.token {
		d.waits, d.since = state, of.Losses.since(of.Path, state.token)
	}
	return max(0, state.delay+state.delay/50-time.Since(d.since))
}

// say has the directory say what is true from here on, unless it does.
func (p *Place) say(ctx context.Context, store Store, before delayState) error {
	now := delayState{token: p.delayed.token, delay: p.delayed.own, kept: before.kept}
	p.delayed.kept = before.kept
	if now == before || now.delay == 0 && before.delay == 0 {
		p.delayed.written = now.delay > 0
		return nil
	}
	p.delayed.written = now.delay > 0
	guarded := Guarded(store, []Guard{{p.path, p.delayed.token}})
	_, err := guarded.Commit(ctx, Set(p.lock.Path, now.encode(), -1))
	return err
}

// orGone is what it means to a place that it is not there.
func orGone(err error) error {
	if errors.Is(err, ErrGuardLost) || errors.Is(err, ErrNoNode) {
		return ErrGone
	}
	return err
}

// LetGo gives up the place of a holder that lets go by itself: no delay follows. If that is not answered, one may. Leave the place all the
// same.
func (p *Place) LetGo(ctx context.Context, store Store) {
	if p.delayed.written {
		free := delayState{token: p.delayed.token, kept: p.delayed.kept}
		_, _ = store.Commit(context.WithoutCancel(ctx), Delete(p.path, -1), Set(p.lock.Path, free.encode(), -1))
	}
}

// delayState is what the lock's directory says, as the tree shows it.
func (l Lock) delayState(ctx context.Context, tree Tree) (state delayState, _ error) {
	directory, err := tree.Get(ctx, l.Path)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return state, err
	}
	return delayStateIn(directory.Data), nil
}

// delay takes in what the directory said before the contenders were listed, and says whether the hold that it tells of may be lost: then it
// is to be read again. A holder that lets go by itself changes it.
func (v *View) delay(said delayState) (lost bool) {
	if said.delay == 0 || v.Readable() != nil {
		return false
	}
	for i := range v.Holders {
		if v.Holders[i].Token == said.token {
			v.Holders[i].Delay = said.delay
			return false
		}
	}
	return true
}

// lose takes in that a hold is lost, if the directory says after the list what it said before: the first contender waits yet.
func (v *View) lose(before, after delayState) {
	if before == after {
		v.Lost, v.LostDelay = before.token, before.delay
		v.Waiters, v.Holders = append(v.Holders, v.Waiters...), nil
	}
}
