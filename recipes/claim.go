package recipes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Errors of claims.
var (
	// ErrNoClaim means that there is no claim with this id: it was never made, or it has ended more than a day ago.
	ErrNoClaim = errors.New("no claim with this id")
	// ErrClaimEnded means that the claim has ended: it was released, broken, or its time was over.
	ErrClaimEnded = errors.New("the claim has ended")
	// ErrOtherClaim means that the claim with this id is one of another lock.
	ErrOtherClaim = errors.New("the claim with this id is one of another lock, or in another mode")
	// ErrTooManyClaims means that there are as many claims as there may be.
	ErrTooManyClaims = errors.New("too many claims")
	// ErrClaimAsked means that an operator has asked for the end of the claim, so that it is not extended any more.
	ErrClaimAsked = errors.New("an operator ends the claim")
)

const (
	// MaxClaims bounds the claims of one ensemble: their directory is listed as a whole.
	MaxClaims = 10000
	// MaxClaimsOfLock bounds the claims in the queue of one lock.
	MaxClaimsOfLock = 16
	// MaxClaimSpan is how long a claim stands at most, unless it is extended.
	MaxClaimSpan = 30 * 24 * time.Hour
	// MaxClaimValidity is for how long an answer proves that a claim stands, whatever operators do.
	MaxClaimValidity = 58 * time.Second

	// claimTimeout stands in a claim's place where others tell the timeout of their session: who breaks a claim waits so long.
	claimTimeout = time.Minute
	// claimPending is for how long a claim stands that is not granted, after its sidecar has last said that it waits.
	claimPending = 30 * time.Second
	claimRenewal = claimPending / 3
	claimKept    = 24 * time.Hour // for how long the record of a claim that has ended says so
	claimMark    = "-claim"       // stands in the names of claims' places
	claimRoom    = 256            // bytes of a record, beside the paths that it tells
)

// Claims are locks that are held without a process: by a person, or by a pipeline. A claim is a record. Its place in the lock's queue is a node
// that belongs to no session, so that each client of the ensemble waits for it as for any other. The record says until when the claim stands.
//
// One transaction makes the record and the place, and one ends both. It names the version of the record that was found over: so no claim ends
// that was extended meanwhile. Each write of a record checks or deletes the claim's place, whose name never comes back, or takes the version of
// the clock's node that it has seen. So no write that comes late meets the record of a later claim with the same id.
//
// A claim's end is a time by wall clocks, unlike all else here. It is over when the ensemble's clock and that of the machine that removes it are
// past its end, both by the tolerance.
type Claims struct {
	Path      string        // of the records' directory
	Clock     string        // a node whose time is the ensemble's when it is set
	Tolerance time.Duration // how far the clocks may be wrong

	// Expired is told of each claim that Sweep has ended because its time was over, with the path of its lock; may be nil.
	Expired func(lock string, token int64)
}

// A ClaimRequest is what a caller wants.
type ClaimRequest struct {
	ID     string // whoever knows it owns the claim: it is stored nowhere
	Mode   Mode
	About  About
	Reason string
	For    time.Duration // from the grant on
	May    func() error  // why it must not be granted now; may be nil
	Caller string        // in whose share of claims it counts: what CallerOfClaims makes of an identity

	// Admit says why its caller may have no more claims. It is asked before one is made, and done is called when that was answered. May be nil.
	Admit func() (done func(), _ error)
}

// CallerOfClaims stands for an identity in records.
func CallerOfClaims(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:8])
}

// Reserved is what a claim's place says of it, for people.
type Reserved struct {
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"` // by the clock of the sidecar that has granted or extended it; zero while it waits
}

type claimState string

const (
	claimWaits claimState = "PENDING"
	claimHeld  claimState = "HELD"
	claimEnded claimState = "ENDED"
)

// claimForm is the data of a record.
type claimForm struct {
	State claimState    `json:"state"`
	Lock  string        `json:"lock"`           // path of its directory
	Place string        `json:"place"`          // name of its node; without the number until it is held
	Span  time.Duration `json:"span_ns"`        // from when the record was written
	Said  time.Time     `json:"said"`           // when that was, by the clock of the machine that has written it
	Least time.Time     `json:"least,omitzero"` // it does not end before: an extension shortens nothing
	Clean bool          `json:"released,omitempty"`

	Caller string `json:"caller,omitempty"` // see ClaimRequest
}

// A claimRecord is what is known of a claim.
type claimRecord struct {
	claimForm

	path    string
	version int32
	written time.Time // by the ensemble's clock
}

// A ClaimState is how a claim stands.
type ClaimState struct {
	Lock     string // path of the lock's directory
	Token    int64
	Until    time.Time     // by the ensemble's clock
	Reserved time.Duration // until then, by the later of two clocks
	Valid    time.Duration // for so long it stands, whatever operators do; counted from when Check or Extend was called
}

func (c Claims) record(id string) string {
	sum := sha256.Sum256([]byte(id))
	return c.Path + "/" + hex.EncodeToString(sum[:])
}

// begins is when the record was written, by the later of two clocks: so one that is slow ends nothing early.
func (r claimRecord) begins() time.Time { return later(r.written, r.Said) }

// end is when a claim is over; that of a record that says that one has ended, when it is removed.
func (r claimRecord) end() time.Time {
	span := r.Span
	switch r.State {
	case claimWaits:
		span = claimPending
	case claimEnded:
		span = claimKept
	case claimHeld:
	}
	if end := r.begins().Add(span); end.After(r.Least) || r.State != claimHeld {
		return end
	}
	return r.Least
}

// encode takes the room at once that an ended claim needs, so that no quota keeps one from ending.
func (f claimForm) encode() []byte {
	f.Said, f.Least = f.Said.UTC(), f.Least.UTC()
	return padded(encode(f), claimRoom+len(f.Lock)+len(f.Place))
}

// read reads a record. ErrNoClaim, ErrMalformedRecord.
func (c Claims) read(ctx context.Context, tree Tree, at string) (of claimRecord, err error) {
	node, err := tree.Get(ctx, at)
	if errors.Is(err, ErrNoNode) {
		return of, ErrNoClaim
	}
	if err != nil {
		return of, err
	}
	of.path, of.version, of.written = at, node.Version, node.Modified
	if json.Unmarshal(node.Data, &of.claimForm) != nil || !of.isOurs() {
		of.claimForm = claimForm{}
		return of, ErrMalformedRecord
	}
	return of, nil
}

// isOurs says whether a record is in our form. Any program may have written it.
func (f claimForm) isOurs() bool {
	return slices.Contains([]claimState{claimWaits, claimHeld, claimEnded}, f.State) && f.Span >= 0 && f.Span <= MaxClaimSpan &&
		path.IsAbs(f.Lock) && path.Clean(f.Lock) == f.Lock && neverAgain.MatchString(f.Place) && !strings.Contains(f.Place, "/") &&
		!strings.ContainsFunc(f.Lock+f.Place, IsInNoPath) && isTime(f.Least) && isTime(f.Said)
}

// isTime says whether a time can be written that was read, and a later one. Some cannot.
func isTime(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 1 && year < 9000
}

// place reads a claim's place, and says where it is. ErrNoNode if it is gone, or not there yet.
func (r claimRecord) place(ctx context.Context, tree Tree) (at string, place Node, err error) {
	name := r.Place
	if r.State != claimHeld {
		names, err := tree.Children(ctx, r.Lock)
		if err != nil {
			return "", place, err
		}
		found := slices.IndexFunc(names, func(child string) bool { return strings.HasPrefix(child, r.Place) })
		if found < 0 {
			return "", place, ErrNoNode
		}
		name = names[found]
	}
	at = r.Lock + "/" + name
	place, err = tree.Get(ctx, at)
	return at, place, err
}

// A standingClaim is a claim that stands, with its place.
type standingClaim struct {
	claimRecord

	at    string // path of the place
	place Node
	now   time.Time // by the ensemble's clock, when it was looked at
}

// find reads a claim and its place with all that was committed before. ErrNoClaim; ErrClaimEnded, also if its place is gone.
func (c Claims) find(ctx context.Context, store Store, id string) (found standingClaim, err error) {
	if err := store.CatchUp(ctx); err != nil {
		return found, unsent(err)
	}
	if found.claimRecord, err = c.read(ctx, store, c.record(id)); err != nil {
		return found, err
	}
	if found.State == claimEnded {
		return found, ErrClaimEnded
	}
	found.at, found.place, err = found.claimRecord.place(ctx, store)
	if errors.Is(err, ErrNoNode) {
		err = ErrClaimEnded
	}
	if err == nil {
		found.now, _, err = setClock(ctx, store, c.Clock)
	}
	return found, err
}

// state is how a claim stands that is held.
func (s *standingClaim) state() ClaimState {
	left := s.end().Sub(later(wall(), s.now))
	of := ClaimState{Lock: s.Lock, Token: s.place.Czxid, Until: s.end(), Reserved: max(0, left)}
	if isOurs(s.place.Data) && !revocationIn(s.place.Data).Break { // what overwrites it may hide that an operator ends it
		of.Valid = min(of.Reserved, MaxClaimValidity)
	}
	return of
}

// Check says how a claim stands. ErrNoClaim, ErrClaimEnded. A claim that waits is not valid, and reserves nothing. One whose place another
// client has overwritten is not valid either, until it is extended.
func (c Claims) Check(ctx context.Context, store Store, id string) (ClaimState, error) {
	found, err := c.find(ctx, store, id)
	if err != nil || found.State != claimHeld {
		return ClaimState{Lock: found.Lock}, err
	}
	return found.state(), nil
}

// Extend has a claim end no earlier than so long from now; it never shortens one. ErrNoClaim, also for a claim that waits; ErrClaimEnded;
// ErrClaimAsked.
func (c Claims) Extend(ctx context.Context, store Store, id string, span time.Duration) (ClaimState, error) {
	var lost lostReply
	for {
		found, err := c.find(ctx, store, id)
		switch {
		case err != nil:
			return ClaimState{Lock: found.Lock}, lost.or(err)
		case found.State != claimHeld:
			return ClaimState{}, ErrNoClaim
		case revocationIn(found.place.Data).Break:
			return ClaimState{Lock: found.Lock}, ErrClaimAsked
		}
		found.Least, found.Span = found.end(), span
		about, _ := aboutIn(found.place.Data)
		if err = found.write(ctx, store, about); err == nil {
			return found.state(), nil
		}
		if err := lost.again(err); err != nil {
			return ClaimState{Lock: found.Lock}, err
		}
	}
}

// write writes a claim that is held, if its place has the version in which it was seen: then no operator has asked for its end meanwhile.
func (s *standingClaim) write(ctx context.Context, store Store, about About) error {
	s.Said = wall().UTC()
	reserved := Reserved{Until: later(s.Said.Add(s.Span), s.Least)}
	if about.Reserved != nil {
		reserved.Reason = about.Reserved.Reason
	}
	about.Reserved, about.Timeout = &reserved, claimTimeout
	nodes, err := store.Commit(ctx, Set(s.at, about.encode(), s.place.Version), Set(s.path, s.claimForm.encode(), s.version))
	if err == nil {
		s.now, s.written, s.place.Data = nodes[1].Modified, nodes[1].Modified, about.encode()
	}
	return err
}

// Release ends a claim, also one that waits. ErrNoClaim; ErrClaimEnded if it has ended otherwise than by Release.
func (c Claims) Release(ctx context.Context, store Store, id string) (ClaimState, error) {
	var lost lostReply
	for twice := false; ; {
		found, err := c.find(ctx, store, id)
		switch {
		case errors.Is(err, ErrClaimEnded) && found.State == claimEnded && found.Clean, bool(lost) && errors.Is(err, ErrNoClaim):
			return ClaimState{Lock: found.Lock}, nil
		case errors.Is(err, ErrClaimEnded) && found.State != claimEnded && !twice: // its place went just after the record was read
			twice = true
			continue
		}
		if err != nil {
			return ClaimState{Lock: found.Lock}, lost.or(err)
		}
		err = found.finish(ctx, store, found.at, true)
		if err == nil {
			return ClaimState{Lock: found.Lock, Token: found.place.Czxid}, nil
		}
		if err := lost.again(err); err != nil {
			return ClaimState{Lock: found.Lock}, err
		}
	}
}

// IsClaim says whether a contender of this name is a claim.
func IsClaim(name string) bool {
	of, ok := parseChild(name)
	return ok && of.claims
}

// A lostReply remembers that a write may have been carried out.
type lostReply bool

// again is why a write is not to be tried again; nil if it is.
func (l *lostReply) again(err error) error {
	*l = *l || lostReply(errors.Is(err, ErrOutcomeUnknown))
	return l.or(again(err))
}

// or is what an error means after the writes before it: where the ensemble does not answer, a lost one may have been carried out.
func (l *lostReply) or(err error) error {
	if bool(*l) && errors.Is(err, ErrUnreachable) {
		return fmt.Errorf("%w: %v", ErrOutcomeUnknown, err) //nolint:errorlint // it was sent
	}
	return err
}

// finish ends a claim and its place in one transaction.
func (r claimRecord) finish(ctx context.Context, store Store, at string, clean bool) error {
	_, err := store.Commit(ctx, r.final(clean), Delete(at, -1))
	return err
}

// final is what becomes of the record when its claim ends: that of one that was held says so.
func (r claimRecord) final(clean bool) Change {
	if r.State != claimHeld {
		return Delete(r.path, r.version)
	}
	r.State, r.Clean, r.Said = claimEnded, clean, wall()
	return Set(r.path, r.encode(), r.version)
}
