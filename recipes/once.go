package recipes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Errors of work that is done once. Each comes in a *RecordError, except ErrTooManyKeys.
var (
	// ErrDone means that the work has succeeded, or that the attempt was finished with another outcome.
	ErrDone = errors.New("the work is done, or the attempt was finished with another outcome")
	// ErrNotRepeated means that an earlier attempt was lost or has failed, and no other is wanted.
	ErrNotRepeated = errors.New("an earlier attempt was lost or has failed, and no other may begin")
	// ErrStands means that the place of another attempt stands.
	ErrStands = errors.New("the place of another attempt stands")
	// ErrOtherLock means that another lock guards the record than the caller holds.
	ErrOtherLock = fmt.Errorf("the key was begun with another lock: %w", ErrKindMismatch)
	// ErrSuperseded means that another attempt has begun since, or that the record was forgotten.
	ErrSuperseded = errors.New("another attempt has begun since, or the record was forgotten")
	// ErrMalformedRecord means that the record is not in our form.
	ErrMalformedRecord = errors.New("the record is not in Sidekeeper's form")
	// ErrNoRecord means that there is no record of the key.
	ErrNoRecord = errors.New("no record of this key")
	// ErrTooManyKeys means that a name has as many records as it may have.
	ErrTooManyKeys = errors.New("too many keys of one name")
)

const (
	// MaxKeys bounds how many records a name has: their directory is listed as a whole.
	MaxKeys = 10000
	// MaxNote bounds the note of an outcome, in bytes: room for it is taken when the attempt begins.
	MaxNote = 256
	// recordTolerance is what is added to the time that a record is kept: a clock may be off by so much.
	recordTolerance = 5 * time.Second
)

// Once is work that is done once for each key of a name. A key's record is a node that stays, and says how its newest attempt stands. It is
// written in a transaction that checks the place of the lock that guards it, and which one that is stands in the record. So of two writes the
// one of the later holder comes last, however late the other is sent. A version alone would not tell a record from one that was made anew.
//
// A record that was begun belongs to the attempt whose token it has. It is lost when the attempt's place is gone, whose name never comes back.
type Once struct {
	Path   string                             // of the records' directory
	Clock  string                             // a node whose time is the ensemble's when it is set
	LockOf func(key string, perKey bool) Lock // that guards a record
}

// An Outcome is how an attempt has ended; Begun before that.
type Outcome string

// The outcomes.
const (
	Begun     Outcome = "BEGUN"
	Succeeded Outcome = "SUCCEEDED"
	Failed    Outcome = "FAILED"
)

// An Ended is an attempt that is over.
type Ended struct {
	Outcome  Outcome   `json:"outcome"` // Begun of one that was lost
	Attempt  int       `json:"attempt"` // 1 for the first
	Owner    string    `json:"owner,omitempty"`
	Identity string    `json:"identity,omitempty"`
	Note     string    `json:"note,omitempty"`
	At       time.Time `json:"at,omitzero"` // by the ensemble's clock: when it was finished, or had begun
}

// recordForm is the data of a record.
type recordForm struct {
	Ended

	Token    int64         `json:"token"`
	Place    string        `json:"place"` // path of the place that was granted
	PerKey   bool          `json:"per_key,omitempty"`
	Keep     time.Duration `json:"keep_ns"`           // after Finish
	Finished time.Time     `json:"finished,omitzero"` // by the clock of the machine that has recorded the outcome
	Previous *Ended        `json:"previous,omitempty"`
}

// encode takes the room that Finish needs at once, so that no quota can refuse it later.
func (f recordForm) encode() []byte {
	full := f
	full.Outcome, full.Note, full.Finished = Succeeded, strings.Repeat(`"`, MaxNote), time.Unix(0, 0).UTC()
	return padded(compact(f), len(compact(full)))
}

// compact encodes no byte of a text without control characters with more than two.
func compact(form any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(form); err != nil {
		panic(err) // texts, numbers and times only
	}
	return bytes.TrimSpace(text.Bytes())
}

// padded is data with blanks behind them, up to a size.
func padded(data []byte, size int) []byte {
	return append(data, bytes.Repeat([]byte{' '}, max(0, size-len(data)))...)
}

// A Record is what is known of a key.
type Record struct {
	recordForm

	Key  string
	Lost bool // it was begun, and its place is gone
	node Node
}

// BegunBefore is the record of an attempt of which only its hold is known. It is for IsFinished and FinishLost.
func BegunBefore(key string, perKey bool, token int64) Record {
	return Record{Key: key, recordForm: recordForm{Ended: Ended{Outcome: Begun}, PerKey: perKey, Token: token}}
}

// A RecordError is an error with the record that it is about; the record is zero if there is none.
type RecordError struct {
	Err    error
	Record Record
}

func (r *RecordError) Error() string { return r.Err.Error() }
func (r *RecordError) Unwrap() error { return r.Err }

func (o Once) record(key string) string { return o.Path + "/" + key }

// Get reads a record. ErrNoRecord, ErrMalformedRecord.
func (o Once) Get(ctx context.Context, tree Tree, key string) (Record, error) {
	if err := tree.CatchUp(ctx); err != nil {
		return Record{}, unsent(err)
	}
	return o.Read(ctx, tree, key)
}

// Read reads a record as the tree shows it, and says whether its attempt is lost. ErrNoRecord, ErrMalformedRecord.
func (o Once) Read(ctx context.Context, tree Tree, key string) (Record, error) {
	before := Record{}
	for {
		of, err := o.readAt(ctx, tree, key)
		if err != nil || of.Outcome != Begun {
			return of, err
		}
		_, err = tree.Get(ctx, of.Place)
		switch {
		case !errors.Is(err, ErrNoNode):
			return of, err
		case before.node.Mzxid == of.node.Mzxid: // Finish has not removed the place, or its record would be another by now
			of.Lost = true
			return of, nil
		}
		before = of
	}
}

// readAt reads a record without its place.
func (o Once) readAt(ctx context.Context, tree Tree, key string) (of Record, err error) {
	of.Key = key
	of.node, err = tree.Get(ctx, o.record(key))
	switch {
	case errors.Is(err, ErrNoNode):
		return of, &RecordError{ErrNoRecord, of}
	case err != nil:
		return of, err
	case json.Unmarshal(of.node.Data, &of.recordForm) != nil || !of.isOurs():
		bad := Record{Key: key, node: of.node, recordForm: recordForm{Ended: Ended{At: of.node.Modified}, PerKey: of.PerKey}}
		return bad, &RecordError{ErrMalformedRecord, bad}
	}
	of.At = of.node.Modified
	return of, nil
}

// isOurs says whether a record is in our form. Any program may have written it.
func (f recordForm) isOurs() bool {
	return slices.Contains([]Outcome{Begun, Succeeded, Failed}, f.Outcome) && f.Attempt > 0 && f.Attempt <= math.MaxInt32 && f.Token > 0 &&
		f.Keep >= 0 && path.IsAbs(f.Place) && path.Clean(f.Place) == f.Place && neverAgain.MatchString(path.Base(f.Place)) &&
		!strings.ContainsFunc(f.Place, IsInNoPath)
}

// IsInNoPath says of a character that ZooKeeper refuses it.
func IsInNoPath(r rune) bool {
	return unicode.IsControl(r) || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// Keys are those that have records, in order.
func (o Once) Keys(ctx context.Context, tree Tree) ([]string, error) {
	keys, err := childrenNamed(tree.Children(ctx, o.Path))
	keys = slices.Clone(keys)
	slices.Sort(keys)
	return keys, err
}

// Done says whether the work has succeeded: then ErrDone.
func (o Once) Done(ctx context.Context, store Store, key string) error {
	of, err := o.Get(ctx, store, key)
	if errors.Is(err, ErrNoRecord) {
		return nil
	}
	if err != nil || of.Outcome != Succeeded {
		return err
	}
	over, err := o.isOver(ctx, store, of)
	if err == nil && !over {
		err = &RecordError{ErrDone, of}
	}
	return err
}

// isOver says whether a record counts no more: the time is over that it is kept after Finish, by the clock of this machine and by that of the
// ensemble. It began by the later of two clocks, too. So one clock that is wrong makes nothing end early.
func (o Once) isOver(ctx context.Context, store Store, of Record) (bool, error) {
	if !of.seemsOver() {
		return false, nil
	}
	now, _, err := setClock(ctx, store, o.Clock)
	return err == nil && of.isOverAt(now), err
}

// seemsOver says so of a record by the clock of this machine alone.
func (r Record) seemsOver() bool {
	return (r.Outcome == Succeeded || r.Outcome == Failed) && !wall().Before(r.ends())
}

// isOverAt says so by the clock of the ensemble alone.
func (r Record) isOverAt(now time.Time) bool { return now.After(r.ends()) }

func (r Record) ends() time.Time {
	return later(r.At, r.Finished).Add(r.Keep + recordTolerance)
}

// A Work is what a caller wants to begin.
type Work struct {
	Key                      string
	PerKey                   bool
	Keep                     time.Duration
	RepeatLost, RepeatFailed bool // whether another attempt follows one that was lost or has failed
	Most                     int  // attempts
	About                    About
}

// next is the record of an attempt that follows the one found, whose time is over or which was never there if old says so.
func (w Work) next(found Record, old bool, hold *Hold) (recordForm, error) {
	next := recordForm{
		Ended: Ended{Outcome: Begun, Attempt: 1, Owner: w.About.Owner, Identity: w.About.Identity},
		Token: hold.Token, Place: hold.place.path, PerKey: w.PerKey, Keep: w.Keep,
	}
	refused := error(nil)
	switch {
	case old && (found.Attempt == 0 || found.PerKey == w.PerKey):
		return next, nil
	case found.Outcome == Succeeded && !old:
		refused = ErrDone
	case found.PerKey != w.PerKey:
		refused = ErrOtherLock
	case found.Outcome == Begun && !found.Lost:
		refused = ErrStands
	case found.Attempt >= w.Most, found.Lost && !w.RepeatLost, found.Outcome == Failed && !w.RepeatFailed:
		refused = ErrNotRepeated
	}
	if refused != nil {
		return next, &RecordError{refused, found}
	}
	next.Attempt, next.Previous = found.Attempt+1, new(found.Ended)
	return next, nil
}

// Begin records an attempt of the lock's holder, unless it has done so already. Nothing of it counts before Begin returns, and it may have been
// recorded even if that is with an error. ErrGone if the holder's place is gone; a *RecordError; ErrTooManyKeys.
func (o Once) Begin(ctx context.Context, store Store, hold *Hold, work Work) (Record, error) {
	for {
		found, err := o.Get(ctx, store, work.Key)
		missing, old := errors.Is(err, ErrNoRecord), false
		switch {
		case err == nil && found.Token == hold.Token && found.Outcome == Begun:
			return found, nil
		case missing:
			err = o.makeRoom(ctx, store, hold, work.About)
		case err == nil:
			old, err = o.isOver(ctx, store, found)
		}
		if err != nil {
			return Record{}, err
		}
		made := Record{Key: work.Key}
		if made.recordForm, err = work.next(found, old || missing, hold); err != nil {
			return Record{}, err
		}
		if made.node, err = o.write(ctx, store, made, found, missing, hold); err == nil {
			return made, nil
		}
		if err := again(err); err != nil {
			return Record{}, err
		}
	}
}

// write writes an attempt in the place of the record that was found, or where none was.
func (o Once) write(ctx context.Context, store Store, made, found Record, missing bool, hold *Hold) (Node, error) {
	change := Set(o.record(made.Key), made.encode(), found.node.Version)
	if missing {
		change = Create(change.Path, change.Data)
	}
	nodes, err := Guarded(store, []Guard{hold.Guard()}).Commit(ctx, change)
	if err == nil {
		return nodes[0], nil
	}
	if missing && errors.Is(err, ErrNoNode) {
		err = cmp.Or(store.MakeDirectory(ctx, o.Path), err)
	}
	return Node{}, err
}

// again is why a record's write is not to be tried again after another look; nil if it is.
func again(err error) error {
	for _, changed := range []error{ErrOutcomeUnknown, ErrExists, ErrBadVersion, ErrNoNode} {
		if errors.Is(err, changed) {
			return nil
		}
	}
	return orGone(err)
}
