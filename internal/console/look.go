package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// How far one look goes: those locks come first that have the most contenders.
const (
	mostExplained = 300
	lookTime      = 3 * time.Second
	longestChain  = 8
	listedAtOnce  = 1000
	endsSoon      = 10 * time.Minute
)

// A look is what was seen of all locks at one moment.
type look struct {
	Locks     int          `json:"locks"`
	Waiting   int          `json:"waiting"`
	Longest   float64      `json:"longest"` // seconds, of those that wait
	Omitted   int          `json:"omitted"` // contended locks, for which there was no time
	Refused   int          `json:"refused"` // contended locks, which could not be read
	Why       string       `json:"why"`     // the first of those
	Contended []contention `json:"contended"`
	Circles   []circle     `json:"circles"`
	Ending    []claim      `json:"ending"`

	waits   []wait
	holders map[string]party // the first one of each contended lock
	at      time.Time
}

// A contention is a lock that is waited for.
type contention struct {
	Name    string  `json:"name"`
	Waiting int     `json:"waiting"`
	Longest float64 `json:"longest"`
	Holders int     `json:"holders"`
	Holder  *party  `json:"holder"` // the one that was granted the lock first
	Held    float64 `json:"held"`   // at least
	Usual   float64 `json:"usual"`  // the longest hold of those that are remembered; 0 if there is none
	Median  float64 `json:"median"`
	Circle  bool    `json:"circle"` // whether one that waits here waits in a circle

	token int64 // of that holder
}

// A party is a caller at a lock.
type party struct {
	Owner    string  `json:"owner"`
	Identity string  `json:"identity"`
	Lease    string  `json:"lease"`
	Age      float64 `json:"age"`
	Lock     string  `json:"lock"` // that it waits for, if it does
}

// A claim is one that ends within minutes.
type claim struct {
	Name   string  `json:"name"`
	Reason string  `json:"reason"`
	Left   float64 `json:"left"` // seconds until its end, by the clock of this machine
}

// A wait is a caller that waits, with the holders behind it: each waits for a lock of the next one.
type wait struct {
	Waiter party   `json:"waiter"`
	Token  string  `json:"token"`
	Chain  []party `json:"chain"`
	Circle bool    `json:"circle"`
}

// A circle has the callers that wait for each other.
type circle struct {
	Parties []party `json:"parties"`
	Age     float64 `json:"age"`   // since the last of them began to wait
	Guess   bool    `json:"guess"` // whether those are taken for one that call themselves the same

	tokens []int64
}

// lookAt looks at all locks, and into those that are contended.
func lookAt(ctx context.Context, locks lockv1.LockServiceClient) (*look, error) {
	l := &look{Contended: []contention{}, Circles: []circle{}, Ending: []claim{}, waits: []wait{}, holders: map[string]party{}}
	contended, claimed, err := l.list(ctx, locks)
	if err != nil {
		return nil, err
	}
	explained := map[string]*lockv1.ExplainedLock{}
	begun := time.Now()
	for i, lock := range contended {
		if explained[lock.GetName()] != nil {
			continue
		}
		if i == mostExplained || time.Since(begun) > lookTime {
			l.Omitted = len(contended) - i
			break
		}
		explanation, err := locks.Explain(ctx, &lockv1.ExplainRequest{Name: lock.GetName()})
		if ctx.Err() != nil || slices.Contains([]codes.Code{codes.Unavailable, codes.DeadlineExceeded}, status.Code(err)) {
			return nil, cmp.Or(err, ctx.Err()) // none of the others is known, either
		}
		if err != nil {
			l.Refused, l.Why = l.Refused+1, cmp.Or(l.Why, status.Convert(err).Message())
			continue
		}
		for _, one := range explanation.GetLocks() {
			explained[one.GetName()] = one
		}
		l.noteCircles(explanation)
	}
	for _, one := range explained {
		l.note(one)
	}
	l.guess()
	l.arrange()
	err = l.noteClaims(ctx, locks, claimed)
	return l, err
}

// noteClaims notes which claims end soon, of those that it has the time to look at. What it may not read is left out.
func (l *look) noteClaims(ctx context.Context, locks lockv1.LockServiceClient, claimed []string) error {
	begun := time.Now()
	for i, name := range claimed {
		if i == mostExplained || time.Since(begun) > lookTime {
			break
		}
		got, err := locks.Get(ctx, &lockv1.GetRequest{Name: name})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			continue
		}
		for _, holder := range got.GetView().GetHolders() {
			if until := holder.GetClaim().GetUntil(); until != nil && time.Until(until.AsTime()) < endsSoon {
				l.Ending = append(l.Ending, claim{name, holder.GetClaim().GetReason(), time.Until(until.AsTime()).Seconds()})
			}
		}
	}
	slices.SortFunc(l.Ending, func(a, b claim) int { return cmp.Compare(a.Left, b.Left) })
	return nil
}

// list counts all locks, and returns those that are contended, those with the most contenders first; and the names of those that are claimed.
func (l *look) list(ctx context.Context, locks lockv1.LockServiceClient) (contended []*lockv1.Lock, claimed []string, err error) {
	all, err := listAll(ctx, locks)
	l.Locks = len(all)
	for _, lock := range all {
		if lock.GetClaims() > 0 {
			claimed = append(claimed, lock.GetName())
		}
	}
	contended = slices.DeleteFunc(all, func(lock *lockv1.Lock) bool { return lock.GetContenders() <= 1 })
	slices.SortStableFunc(contended, func(a, b *lockv1.Lock) int { return cmp.Compare(b.GetContenders(), a.GetContenders()) })
	return contended, claimed, err
}

func listAll(ctx context.Context, locks lockv1.LockServiceClient) (all []*lockv1.Lock, err error) {
	for token := ""; ; {
		page, err := locks.List(ctx, &lockv1.ListRequest{PageSize: listedAtOnce, PageToken: token})
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetLocks()...)
		if token = page.GetNextPageToken(); token == "" {
			return all, nil
		}
	}
}

// noteCircles notes those that are new. Two explanations can have the same one, if one of them is incomplete.
func (l *look) noteCircles(explanation *lockv1.ExplainResponse) {
	for _, cycle := range explanation.GetCycles() {
		found := circle{}
		for _, link := range cycle.GetLinks() {
			age := link.GetAge().AsDuration().Seconds()
			found.Parties = append(found.Parties, party{Owner: link.GetOwner(), Lease: link.GetLease(), Age: age, Lock: link.GetWaitsFor()})
			found.tokens = append(found.tokens, link.GetFencingToken())
			if len(found.tokens) == 1 || age < found.Age {
				found.Age = age
			}
		}
		if !slices.ContainsFunc(l.Circles, func(known circle) bool { return known.has(found.Parties[0].Lock, found.tokens[0]) }) {
			l.Circles = append(l.Circles, found)
		}
	}
}

// has says whether the caller that waits for this lock with this token is in the circle.
func (c circle) has(lock string, token int64) bool {
	for i, link := range c.Parties {
		if link.Lock == lock && c.tokens[i] == token {
			return true
		}
	}
	return false
}

// note notes those that wait for a lock.
func (l *look) note(lock *lockv1.ExplainedLock) {
	waiting := len(lock.GetWaiters()) + int(lock.GetWaitersOmitted())
	if waiting == 0 {
		return
	}
	l.Waiting += waiting
	seen := contention{
		Name: lock.GetName(), Waiting: waiting, Holders: len(lock.GetHolders()),
		Usual: lock.GetUsualHold().GetLongest().AsDuration().Seconds(), Median: lock.GetUsualHold().GetMedian().AsDuration().Seconds(),
	}
	if seen.Holders > 0 {
		holder := lock.GetHolders()[0]
		first := partyOf(holder, strings.Join(holder.GetWaitsFor()[:min(1, len(holder.GetWaitsFor()))], ""))
		l.holders[lock.GetName()] = first
		seen.Holder, seen.token = &first, lock.GetHolders()[0].GetContender().GetToken()
	}
	for _, waiter := range lock.GetWaiters() {
		one := wait{
			Waiter: partyOf(waiter, lock.GetName()), Token: fmt.Sprint(waiter.GetContender().GetToken()),
		}
		one.Circle = slices.ContainsFunc(l.Circles, func(known circle) bool { return known.has(lock.GetName(), waiter.GetContender().GetToken()) })
		l.waits = append(l.waits, one)
		seen.Longest = max(seen.Longest, one.Waiter.Age)
	}
	l.Longest = max(l.Longest, seen.Longest)
	l.Contended = append(l.Contended, seen)
}

func partyOf(one *lockv1.Party, lock string) party {
	contender := one.GetContender()
	return party{contender.GetOwner(), contender.GetIdentity(), one.GetLease(), contender.GetAge().AsDuration().Seconds(), lock}
}

// is says whether two are one, as far as leases tell. Of callers with a lease for each lock, what they call themselves tells.
func (p party) is(other party) bool {
	return p.Lease != "" && p.Lease == other.Lease || p.Owner != "" && p.Owner == other.Owner && p.Identity == other.Identity
}

// guess follows holders that wait elsewhere under the same name, and notes the circles that they make. Then each wait gets its chain.
func (l *look) guess() {
	for lock, holder := range l.holders {
		for _, one := range l.waits {
			if holder.Lock == "" && one.Waiter.Lock != lock && one.Waiter.is(holder) {
				holder.Lock = one.Waiter.Lock
				l.holders[lock] = holder
			}
		}
	}
	for lock := range l.holders {
		if found := l.circleOf(lock); found != nil {
			l.Circles = append(l.Circles, *found)
		}
	}
	for i := range l.waits {
		l.waits[i].Chain = l.chainOf(l.waits[i].Waiter.Lock)
	}
}

// circleOf is the circle in which the holder of a lock waits by its name, unless it is known; nil if there is none.
func (l *look) circleOf(lock string) *circle {
	found, waits := &circle{Guess: true}, []*wait{}
	for _, holder := range l.chainOf(lock) {
		at := slices.IndexFunc(l.waits, func(one wait) bool { return one.Waiter.Lock == holder.Lock && one.Waiter.is(holder) })
		known := slices.ContainsFunc(found.Parties, func(one party) bool { return one.is(holder) })
		if at < 0 || l.waits[at].Circle || known {
			return nil
		}
		waits, found.Parties = append(waits, &l.waits[at]), append(found.Parties, l.waits[at].Waiter)
	}
	if len(waits) < 2 || waits[len(waits)-1].Waiter.Lock != lock {
		return nil
	}
	found.Age = waits[0].Waiter.Age
	for _, one := range waits {
		one.Circle, found.Age = true, min(found.Age, one.Waiter.Age)
	}
	return found
}

// chainOf has the holder of a lock, that of the lock which this one waits for, and so on.
func (l *look) chainOf(lock string) []party {
	chain, met := []party{}, map[string]bool{}
	for !met[lock] && len(chain) < longestChain {
		met[lock] = true
		holder, ok := l.holders[lock]
		if !ok {
			break
		}
		chain, lock = append(chain, holder), holder.Lock
	}
	return chain
}

// arrange puts first what a person should see first: circles, then the longest waits, and the locks with the most waiters.
func (l *look) arrange() {
	slices.SortFunc(l.waits, func(a, b wait) int {
		return cmp.Or(first(a.Circle, b.Circle), cmp.Compare(b.Waiter.Age, a.Waiter.Age), strings.Compare(a.Waiter.Lock, b.Waiter.Lock))
	})
	for i := range l.Contended {
		lock := &l.Contended[i]
		lock.Circle = slices.ContainsFunc(l.waits, func(one wait) bool { return one.Circle && one.Waiter.Lock == lock.Name })
	}
	slices.SortFunc(l.Contended, func(a, b contention) int {
		return cmp.Or(first(a.Circle, b.Circle), cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Longest, a.Longest),
			strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(l.Circles, func(a, b circle) int { return cmp.Compare(b.Age, a.Age) })
}

// first compares two, of which that comes first for which it is so.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// stuck is how many callers wait in a circle.
func (l *look) stuck() int {
	count := 0
	for _, one := range l.Circles {
		count += len(one.Parties)
	}
	return count
}
