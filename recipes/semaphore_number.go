package recipes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxQuarantine is for how long at most a number rests that was lost.
	MaxQuarantine = 24 * time.Hour

	// NumbersSuffix is what the name of the directory of a semaphore's numbers has more than that of its own.
	NumbersSuffix = ".numbers"

	numberMark = "-n"     // stands in the names of permits with a number, before it, and of places that wait for one
	numberRoom = 320      // bytes of a record
	numberTime = "=clock" // the node of the semaphore's clock

	lookForNumberEvery = time.Minute // while there is none
)

// A Numbering has a permit bear a number: the smallest below the limit that is free. No two permits that are granted bear one number.
//
// A number has a record, which no program removes. So each of its versions comes once. The record says which permit bears the number. It is
// written so before the caller is told, in a transaction that checks the permit and the version that was found free. The holder that ends its
// hold deletes the permit and frees the number in one transaction. A number whose permit is gone otherwise is lost. The first in the queue that
// finds it so writes that down, and the number rests for the quarantine from then on.
//
// The end of a quarantine is a time by wall clocks. It is over when the ensemble's clock and that of the machine that looks are past it.
type Numbering struct {
	Store      Store
	Quarantine time.Duration // of the number, if it is lost; 0 for none
}

type numberState string

const (
	numberFree numberState = "FREE"
	numberHeld numberState = "HELD"
	numberLost numberState = "LOST"
)

// numberForm is the data of a number's record.
type numberForm struct {
	State      numberState   `json:"state"`
	Permit     string        `json:"permit,omitempty"` // name of the node that bears the number, or has borne it
	Quarantine time.Duration `json:"quarantine_ns"`
	Said       time.Time     `json:"said"` // when it was written, by the clock of the machine that has written it
}

// encode takes the room at once that later states need, so that no quota keeps a number from being freed.
func (f numberForm) encode() []byte {
	f.Said = wall().UTC()
	return padded(encode(f), numberRoom)
}

// isOurs says whether a record is in our form. Any program may have written it.
func (f numberForm) isOurs() bool {
	return slices.Contains([]numberState{numberFree, numberHeld, numberLost}, f.State) && isTime(f.Said) &&
		f.Quarantine >= 0 && f.Quarantine <= MaxQuarantine && !strings.Contains(f.Permit, "/") &&
		(f.State != numberHeld || neverAgain.MatchString(f.Permit) && !strings.ContainsFunc(f.Permit, IsInNoPath))
}

// A numberRecord is what is known of a number.
type numberRecord struct {
	numberForm

	number  int
	missing bool // there is no record: no permit has borne the number
	isLost  bool // its permit is gone, and the record does not say so
	version int32
	written time.Time // by the ensemble's clock
}

// isFree says whether no permit bears the number, and no quarantine keeps it.
func (r *numberRecord) isFree() bool {
	return r.missing || r.State == numberFree || r.Quarantine == 0 && (r.isLost || r.State == numberLost)
}

// ends is when a quarantine is over. It begins by the later of two clocks: so one that is slow ends nothing early.
func (r *numberRecord) ends() time.Time {
	return later(r.written, r.Said).Add(r.Quarantine + recordTolerance)
}

// parseNumber reads a number as it stands in names.
func parseNumber(text string) (int, bool) {
	number, err := strconv.Atoi(text)
	return number, err == nil && number >= 0 && number < MaxLimit && strconv.Itoa(number) == text
}

func (s Semaphore) numbers() string              { return s.Path + NumbersSuffix }
func (s Semaphore) numberPath(number int) string { return s.numbers() + "/" + strconv.Itoa(number) }

// readNumber reads a number's record, and whether its permit is gone. A record that is not in our form, or may not be read, is one of a number
// that is held.
func (s Semaphore) readNumber(ctx context.Context, tree Tree, number int) (of numberRecord, err error) {
	of.number = number
	node, err := tree.Get(ctx, s.numberPath(number))
	if errors.Is(err, ErrNoNode) {
		of.missing, of.version = true, math.MinInt32
		return of, nil
	}
	if errors.Is(err, ErrDenied) {
		of.State = numberHeld
		return of, nil
	}
	if err != nil {
		return of, err
	}
	of.version, of.written = node.Version, node.Modified
	if isOurs := json.Unmarshal(node.Data, &of.numberForm) == nil && of.isOurs(); !isOurs {
		of.numberForm = numberForm{State: numberHeld}
		return of, nil
	}
	if of.State == numberHeld {
		_, err = tree.Get(ctx, s.permits().Path+"/"+of.Permit)
		of.isLost = errors.Is(err, ErrNoNode) // whose name never comes back
		if of.isLost || errors.Is(err, ErrDenied) {
			err = nil
		}
	}
	return of, err
}

// rereadNumber reads a number's record with all that was committed before.
func (s Semaphore) rereadNumber(ctx context.Context, store Store, number int) (numberRecord, error) {
	if err := store.CatchUp(ctx); err != nil {
		return numberRecord{}, unsent(err)
	}
	return s.readNumber(ctx, store, number)
}

// findNumber looks at the numbers below the limit that none of the permits bears, in order, until one may be taken; nil if none may.
func (s Semaphore) findNumber(
	ctx context.Context, tree Tree, permits queue, limit int, mayTake func(*numberRecord) (bool, error),
) (*numberRecord, error) {
	free := permits.unborne(limit)
	for atOnce := 1; len(free) > 0; atOnce = min(2*atOnce, readsAtOnce) {
		records := make([]numberRecord, min(atOnce, len(free)))
		err := EachOf(len(records), func(i int) (err error) {
			records[i], err = s.readNumber(ctx, tree, free[i])
			return err
		})
		if err != nil {
			return nil, err
		}
		for i := range records {
			if ok, err := mayTake(&records[i]); ok || err != nil {
				return &records[i], err
			}
		}
		free = free[len(records):]
	}
	return nil, nil
}

// unborne are the numbers below the limit that no permit of the queue bears, in order. Any program may have written the limit.
func (q queue) unborne(limit int) []int {
	limit = min(limit, MaxLimit)
	borne := map[int]bool{}
	for _, permit := range q {
		borne[permit.number] = borne[permit.number] || permit.numbered
	}
	free := make([]int, 0, limit)
	for number := range limit {
		if !borne[number] {
			free = append(free, number)
		}
	}
	return free
}

// beyond are the permits that a limit has no room for, in the order in which they are asked for: those with a number that is not below it, and
// of the others those that were granted last.
func (q queue) beyond(limit int) (beyond queue) {
	var others queue
	for _, permit := range q {
		if permit.numbered && permit.number >= limit {
			beyond = append(beyond, permit)
		} else {
			others = append(others, permit)
		}
	}
	others = others[min(limit, len(others)):]
	slices.Reverse(others)
	return append(beyond, others...)
}

// A search is one look of the first in the queue for a number.
type search struct {
	*Permits
	*Numbering

	turn *PermitsTurn
	now  time.Time // of the ensemble, when it was last asked for
}

// chooseNumber chooses the number of the permit that is to be made. If there is none, it returns what to wait for.
func (p *Permits) chooseNumber(ctx context.Context, turn *PermitsTurn) (changed *Signal, err error) {
	if p.semaphore.Numbers == nil || p.nodes != nil {
		return nil, nil
	}
	looks := &search{Permits: p, Numbering: p.semaphore.Numbers, turn: turn}
	if err := looks.Store.CatchUp(ctx); err != nil {
		return nil, unsent(err)
	}
	if turn.Limit, turn.Resized, err = p.semaphore.watchLimit(ctx, looks.Store); err != nil {
		return nil, err
	}
	permits, changed, err := p.semaphore.permits().watchQueue(ctx, looks.Store)
	if err != nil {
		return nil, err
	}
	found, err := p.semaphore.findNumber(ctx, looks.Store, permits, turn.Limit, func(of *numberRecord) (bool, error) {
		return looks.mayTake(ctx, of)
	})
	if err != nil {
		return nil, err
	}
	if found != nil {
		p.number, p.borne = *found, false
		return nil, nil
	}
	if turn.Due.IsZero() {
		turn.Due = wall().Add(lookForNumberEvery) // a record that is not in our form may have been repaired by then
	}
	queue, err := p.lookAtQueue(ctx)
	turn.Marked, turn.Asked = queue.Marked, queue.Asked
	return changed, err
}

// mayTake says whether a number may be chosen. It writes down that one was lost.
func (s *search) mayTake(ctx context.Context, of *numberRecord) (bool, error) {
	if err := s.lose(ctx, of); err != nil {
		return false, err
	}
	if of.isFree() || of.State == numberHeld {
		return of.isFree(), nil
	}
	over, err := s.isOver(ctx, of)
	if err == nil && !over {
		s.turn.Quarantined++
	}
	return over, err
}

// isOver says whether a quarantine is over, by the clock of this machine and by that of the ensemble. Otherwise it notes when to look again.
func (s *search) isOver(ctx context.Context, of *numberRecord) (_ bool, err error) {
	here := wall()
	if !here.After(of.ends()) {
		s.turn.Due = soonest(s.turn.Due, of.ends())
		return false, nil
	}
	if s.now.IsZero() || s.now.After(of.ends()) { // an earlier time is good enough to say no
		if s.now, _, err = setClock(ctx, s.Store, s.semaphore.numbers()+"/"+numberTime); err != nil {
			return false, err
		}
	}
	if !s.now.After(of.ends()) {
		s.turn.Due = soonest(s.turn.Due, here.Add(of.ends().Sub(s.now)))
		return false, nil
	}
	return true, nil
}

// lose writes down that a number was lost, if it was: its quarantine begins. The record is as it stands then.
func (s *search) lose(ctx context.Context, of *numberRecord) error {
	for of.isLost && of.Quarantine > 0 {
		lost := numberForm{State: numberLost, Permit: of.Permit, Quarantine: of.Quarantine}
		nodes, err := Guarded(s.Store, []Guard{{Path: s.place.path}}).Commit(ctx, Set(s.semaphore.numberPath(of.number), lost.encode(), of.version))
		if err == nil {
			lost.Said = wall() // no earlier than what was written
			of.numberForm, of.isLost, of.version, of.written = lost, false, nodes[0].Version, nodes[0].Modified
			return nil
		}
		if err := again(err); err != nil {
			return err
		}
		if *of, err = s.semaphore.rereadNumber(ctx, s.Store, of.number); err != nil {
			return err
		}
	}
	return nil
}

// bear records that the permit bears its number, unless another permit does by now. Nothing of the number is told before. ErrGone if the permit
// is gone, or if it was come back to and is not recorded.
func (p *Permits) bear(ctx context.Context) (bool, error) {
	if p.semaphore.Numbers == nil || p.borne {
		return true, nil
	}
	store, own := p.semaphore.Numbers.Store, p.nodes[0].own
	for isRead := p.place == nil; ; isRead = true {
		if isRead {
			found, err := p.semaphore.rereadNumber(ctx, store, p.number.number)
			switch {
			case err != nil:
				return false, err
			case found.State == numberHeld && found.Permit == own.name:
				p.number, p.borne = found, true
				return true, nil
			case p.place == nil:
				return false, ErrGone
			case found.version != p.number.version:
				return false, nil
			}
		}
		err := p.writeNumber(ctx, store)
		if err == nil {
			p.borne = true
			return true, nil
		}
		if err := again(err); err != nil {
			return false, err
		}
	}
}

// writeNumber writes that the permit bears its number, if the record is as it was found.
func (p *Permits) writeNumber(ctx context.Context, store Store) error {
	node := p.nodes[0]
	held := numberForm{State: numberHeld, Permit: node.own.name, Quarantine: p.semaphore.Numbers.Quarantine}
	change := Set(p.semaphore.numberPath(p.number.number), held.encode(), p.number.version)
	if p.number.missing {
		change = Create(change.Path, change.Data)
	}
	nodes, err := Guarded(store, []Guard{{Path: node.path}}).Commit(ctx, change)
	if err == nil {
		p.number.numberForm, p.number.missing, p.number.version = held, false, nodes[0].Version
	}
	if errors.Is(err, ErrNoNode) {
		err = cmp.Or(store.MakeDirectory(ctx, p.semaphore.numbers()), err)
	}
	return err
}

// Number is the number that the permit bears, once it is granted.
func (p *Permits) Number() (number int, bears bool) { return p.number.number, p.borne }

// isBeyond says whether the permit has a number that is not below the limit.
func (p *Permits) isBeyond(limit int) bool {
	return p.semaphore.Numbers != nil && p.place != nil && p.number.number >= limit
}

// LetGo gives up the permit of a holder that lets go by itself, and frees its number: no quarantine follows. If that is not answered, one may.
// Leave the permits all the same.
func (p *Permits) LetGo(ctx context.Context) {
	if p.semaphore.Numbers == nil || !p.borne {
		return
	}
	store := p.semaphore.Numbers.Store
	for range maxAttempts {
		free := Set(p.semaphore.numberPath(p.number.number), numberForm{State: numberFree}.encode(), p.number.version)
		_, err := store.Commit(context.WithoutCancel(ctx), Delete(p.nodes[0].path, -1), free)
		if !errors.Is(err, ErrOutcomeUnknown) {
			return
		}
	}
}

// mayGetNumber says whether one that waits for a number would get one, as the tree shows it.
func (s Semaphore) mayGetNumber(ctx context.Context, tree Tree, limit int) (bool, error) {
	permits, _, err := s.permits().queue(ctx, tree)
	if err != nil {
		return false, err
	}
	found, err := s.findNumber(ctx, tree, permits, limit, func(of *numberRecord) (bool, error) {
		return of.isFree() || of.State == numberLost && wall().After(of.ends()), nil
	})
	return found != nil, err
}
