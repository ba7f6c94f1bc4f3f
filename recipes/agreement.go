package recipes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors of agreements.
var (
	// ErrNoAgreement means that there is no agreement of this id: there never was, or it has been forgotten.
	ErrNoAgreement = errors.New("no such agreement")
	// ErrNoParticipant means that the agreement was begun without this participant.
	ErrNoParticipant = errors.New("not a participant of the agreement")
	// ErrUndecided means that the agreement is not decided, so that it cannot be forgotten.
	ErrUndecided = errors.New("the agreement is not decided")
)

// What bounds agreements: a decision checks each vote, and all of one name are read as a whole.
const (
	MaxAgreements   = 256
	MaxParticipants = 32
)

// Retention is how long after its deadline a decision is kept for a participant that was frozen or away, unless it is forgotten.
const Retention = time.Hour

// A Decision is what an agreement comes to, once and for good; empty before that.
type Decision string

// The decisions.
const (
	DecisionCommit Decision = "COMMIT"
	DecisionAbort  Decision = "ABORT"
)

// undecided stands in the place of a decision. It is longer than each, so that deciding needs no room that a quota may refuse.
const undecided Decision = "UNDECIDED"

// Agreements are the two-phase commits of one name. Each is a node whose name is drawn for it alone, and whose data hold the proposal and, from
// their second version on, the decision. A participant that votes for COMMIT makes two nodes in it: a claim, which stays, so that it votes once
// at most, and the vote, which lives with the participant's session. There is no vote for ABORT: a caller that wants that decides it.
//
// Each caller that looks decides: COMMIT in a transaction that checks every vote and replaces the data in the version that was seen, ABORT in
// one that replaces them when a vote has gone, when the deadline is over or when it is asked to. Of all those transactions the ensemble carries
// out one, however late the others come, and a frozen coordinator keeps no participant waiting.
type Agreements struct {
	Path string

	// Aborted is called whenever ABORT has been written, or may have been: then the error is ErrOutcomeUnknown. It may be nil.
	Aborted func(error)
}

// A Proposal is what participants are to agree upon.
type Proposal struct {
	Participants []string      `json:"participants"`    // distinct, 1 to MaxParticipants
	Value        []byte        `json:"value,omitempty"` // for the participants
	Timeout      time.Duration `json:"timeout_ns"`      // until the deadline, by the clock of the ensemble's leader and by the looking caller's
}

// An agreementForm is the data of an agreement's node.
type agreementForm struct {
	Proposal

	Decision Decision `json:"decision"`
}

// An Agreement is one as a look has shown it.
type Agreement struct {
	agreementForm

	ID    string
	Voted []bool // for each participant, whether its vote stands; nil once it is decided
	node  Node
}

func (a Agreements) node(id string) string         { return a.Path + "/" + id }
func (a Agreements) claim(id string, i int) string { return fmt.Sprintf("%s/claim-%d", a.node(id), i) }
func (a Agreements) vote(id string, i int) string  { return a.node(id) + "/" + voteName(i) }
func voteName(i int) string                        { return fmt.Sprintf("vote-%d", i) }

// decodeAgreement reads a node. Anybody may have made it: ErrNoAgreement if it is none of ours.
func decodeAgreement(id string, node Node) (Agreement, error) {
	of := Agreement{ID: id, node: node}
	if json.Unmarshal(node.Data, &of.agreementForm) != nil || len(of.Participants) == 0 || len(of.Participants) > MaxParticipants {
		return Agreement{}, ErrNoAgreement
	}
	switch of.Decision {
	case DecisionCommit, DecisionAbort:
		return of, nil
	case undecided:
		of.Decision = ""
		return of, nil
	}
	return Agreement{}, ErrNoAgreement
}

// Deadline is when the agreement is ABORT.
func (a *Agreement) Deadline() time.Time { return a.node.Created.Add(a.Timeout) }

func (a *Agreement) isOverdue() bool { return time.Until(a.Deadline()) <= 0 }

// count notes whose votes are among the names.
func (a *Agreement) count(names []string) {
	there := setOf(names)
	a.Voted = make([]bool, len(a.Participants))
	for i := range a.Voted {
		a.Voted[i] = there[voteName(i)]
	}
}

// Begin begins an agreement and returns its id. A *FullDirectory if MaxAgreements are kept that may not go yet. ErrOutcomeUnknown if the
// reply was lost and the outcome cannot be found out: if it has begun then, no caller knows its id, and it does nothing.
func (a Agreements) Begin(ctx context.Context, store Store, proposal Proposal) (id string, _ error) {
	if err := a.makeRoom(ctx, store); err != nil {
		return "", err
	}
	id = rand.Text()
	begin := Create(a.node(id), encode(agreementForm{Proposal: proposal, Decision: undecided}))
	_, err := store.Commit(ctx, begin)
	for attempt := 0; errors.Is(err, ErrNoNode) && attempt < maxAttempts; attempt++ { // the ensemble may have just removed the directory
		if err = store.MakeDirectory(ctx, a.Path); err == nil {
			_, err = store.Commit(ctx, begin)
		}
	}
	if errors.Is(err, ErrOutcomeUnknown) { // asking again might begin it anew after it was forgotten
		if _, failure := a.Get(ctx, store, id); failure == nil {
			err = nil
		}
	}
	return id, err
}

// makeRoom forgets the oldest agreements whose retention is over, if there are as many as may be.
func (a Agreements) makeRoom(ctx context.Context, store Store) error {
	names, err := childrenNamed(store.Children(ctx, a.Path))
	if err != nil || len(names) < MaxAgreements {
		return err
	}
	all, err := a.List(ctx, store)
	left := len(all)
	for i := range all {
		of := &all[i]
		if err != nil || left < MaxAgreements || time.Until(of.Deadline()) > -Retention {
			continue
		}
		if _, err = a.Abort(ctx, store, of.ID); err == nil { // no caller has looked at it since the deadline
			err = a.Forget(ctx, store, of.ID)
		}
		if err == nil || errors.Is(err, ErrNoAgreement) {
			left, err = left-1, nil
		}
	}
	if err == nil && left >= MaxAgreements {
		return &FullDirectory{Path: a.Path, Limit: "agreements that are kept", Used: left, Max: MaxAgreements}
	}
	return err
}

// List reads all agreements that are kept, the oldest first.
func (a Agreements) List(ctx context.Context, tree Tree) ([]Agreement, error) {
	if err := tree.CatchUp(ctx); err != nil {
		return nil, err
	}
	names, err := childrenNamed(tree.Children(ctx, a.Path))
	if err != nil {
		return nil, err
	}
	all := make([]Agreement, len(names))
	err = EachOf(len(names), func(i int) (err error) {
		if all[i], err = a.read(ctx, tree, names[i]); errors.Is(err, ErrNoAgreement) || errors.Is(err, ErrDenied) {
			return nil // not ours
		}
		return err
	})
	all = slices.DeleteFunc(all, func(of Agreement) bool { return of.ID == "" })
	slices.SortFunc(all, func(a, b Agreement) int { return cmp.Compare(a.node.Czxid, b.node.Czxid) })
	return all, err
}

// Get reads an agreement. ErrNoAgreement.
func (a Agreements) Get(ctx context.Context, tree Tree, id string) (Agreement, error) {
	if err := tree.CatchUp(ctx); err != nil {
		return Agreement{}, err
	}
	return a.read(ctx, tree, id)
}

func (a Agreements) read(ctx context.Context, tree Tree, id string) (of Agreement, _ error) {
	node, err := tree.Get(ctx, a.node(id))
	if errors.Is(err, ErrNoNode) {
		return of, ErrNoAgreement
	}
	if err == nil {
		of, err = decodeAgreement(id, node)
	}
	if err != nil || of.Decision != "" {
		return of, err
	}
	names, err := childrenNamed(tree.Children(ctx, a.node(id)))
	of.count(names)
	return of, err
}

// Abort decides ABORT, unless it is decided, and returns the decision. ErrNoAgreement; ErrOutcomeUnknown if replies were lost: asking again
// is safe.
func (a Agreements) Abort(ctx context.Context, store Store, id string) (Decision, error) {
	for range maxAttempts {
		of, err := a.Get(ctx, store, id)
		if err == nil && of.Decision == "" {
			err = a.decide(ctx, store, of, DecisionAbort)
		} else if err == nil {
			return of.Decision, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", ErrOutcomeUnknown
}

// decide decides, while the votes stand, unless it is decided or forgotten. The next look shows what has become of it.
func (a Agreements) decide(ctx context.Context, store Store, of Agreement, decision Decision, votes ...Guard) error {
	of.Decision = decision
	_, err := Guarded(store, votes).Commit(ctx, Set(a.node(of.ID), encode(of.agreementForm), of.node.Version))
	if decision == DecisionAbort && a.Aborted != nil && (err == nil || errors.Is(err, ErrOutcomeUnknown)) {
		a.Aborted(err)
	}
	if err == nil || isMoved(err) || errors.Is(err, ErrGuardLost) || errors.Is(err, ErrOutcomeUnknown) {
		return store.CatchUp(ctx)
	}
	return err
}

// Forget removes an agreement that is decided. It is as good if there is none. ErrUndecided.
func (a Agreements) Forget(ctx context.Context, store Store, id string) (failure error) {
	for range maxAttempts {
		switch of, err := a.Get(ctx, store, id); {
		case errors.Is(err, ErrNoAgreement):
			return nil
		case err != nil:
			return errors.Join(failure, err)
		case of.Decision == "":
			return ErrUndecided
		}
		names, err := childrenNamed(store.Children(ctx, a.node(id)))
		if err != nil {
			return errors.Join(failure, err)
		}
		var changes []Change
		for _, name := range names {
			changes = append(changes, Delete(a.node(id)+"/"+name, -1))
		}
		_, failure = store.Commit(ctx, append(changes, Delete(a.node(id), -1))...)
		switch {
		case isMoved(failure) || errors.Is(failure, ErrNotEmpty): // a vote has come or gone
			failure = ErrOutcomeUnknown
		case !errors.Is(failure, ErrOutcomeUnknown):
			return failure
		}
	}
	return failure
}

// Await looks until there is a decision, makes it if it can, and returns it. ErrNoAgreement.
func (a Agreements) Await(ctx context.Context, store Store, id string) (Decision, error) {
	if err := store.CatchUp(ctx); err != nil {
		return "", err
	}
	for stood, lost := []bool(nil), false; ; {
		node, changed, err := store.Watch(ctx, a.node(id))
		switch {
		case errors.Is(err, ErrNoNode):
			return "", ErrNoAgreement
		case err != nil:
			return "", err
		}
		of, err := decodeAgreement(id, node)
		if err != nil || of.Decision != "" {
			return of.Decision, err
		}
		names, listed, err := store.WatchChildren(ctx, a.node(id))
		if err == nil {
			of.count(names)
			for i, before := range stood {
				lost = lost || before && !of.Voted[i]
			}
			stood = of.Voted
			err = a.step(ctx, store, of, lost, Changes{changed.Done(), listed.Done()})
		}
		if err != nil && !errors.Is(err, ErrNoNode) {
			return "", err
		}
	}
}

// step decides what can be decided, and otherwise returns when it is worth to look again.
func (a Agreements) step(ctx context.Context, store Store, of Agreement, lost bool, changes Changes) error {
	if lost || of.isOverdue() {
		return a.decide(ctx, store, of, DecisionAbort)
	}
	if !slices.Contains(of.Voted, false) {
		votes := make([]Guard, len(of.Participants))
		for i := range votes {
			votes[i].Path = a.vote(of.ID, i)
		}
		return a.decide(ctx, store, of, DecisionCommit, votes...)
	}
	due, cancel := context.WithDeadline(context.Background(), of.Deadline())
	defer cancel()
	return append(changes, due.Done()).Wait(ctx)
}

// A Vote is a participant's for COMMIT, which stands for as long as its session and until it leaves.
type Vote struct {
	Token int64 // the transaction that made it; 0 if it was decided before

	session MemberSession
	path    string
}

// Vote votes for COMMIT, unless it is decided. Each participant votes once: a second vote in its name is ABORT, though the first was its own and
// its session is over. The caller must Leave. ErrNoAgreement, ErrNoParticipant; ErrOutcomeUnknown if replies were lost. After any error but
// the first two the participant's next vote may be ABORT.
func (a Agreements) Vote(ctx context.Context, store Store, session MemberSession, id, participant string, about About) (*Vote, error) {
	of, err := a.Get(ctx, store, id)
	own := slices.Index(of.Participants, participant)
	switch {
	case err != nil:
		return nil, err
	case own < 0:
		return nil, ErrNoParticipant
	case of.Decision != "":
		return &Vote{}, nil
	}
	claimed, err := claimOnce(ctx, store, a.claim(id, own))
	switch {
	case err != nil:
		return nil, err
	case !claimed:
		return &Vote{}, a.decide(ctx, store, of, DecisionAbort)
	}
	vote := a.vote(id, own)
	node, _, err := session.Create(ctx, vote, about.encode(), Guard{Path: a.claim(id, own)})
	if errors.Is(err, ErrGuardLost) {
		return nil, ErrNoAgreement
	}
	if err != nil {
		_ = a.decide(ctx, store, of, DecisionAbort) // otherwise the deadline decides
		return nil, err
	}
	session.Disregard(vote) // no caller counts on it: all count on the decision
	return &Vote{node.Czxid, session, vote}, nil
}

// claimOnce makes a node in an agreement, and says whether it was this call that did.
func claimOnce(ctx context.Context, store Store, path string) (claimed bool, failure error) {
	own := []byte(rand.Text())
	_, failure = store.Commit(ctx, Create(path, own))
	switch {
	case errors.Is(failure, ErrNoNode):
		return false, ErrNoAgreement
	case !errors.Is(failure, ErrExists) && !errors.Is(failure, ErrOutcomeUnknown):
		return failure == nil, failure
	}
	if err := store.CatchUp(ctx); err != nil {
		return false, errors.Join(ErrOutcomeUnknown, err)
	}
	found, err := store.Get(ctx, path)
	if errors.Is(err, ErrNoNode) { // it may come yet
		err = ErrOutcomeUnknown
	}
	return bytes.Equal(found.Data, own), err
}

// Leave takes the vote back, unless it is decided, and returns when its node or the session is gone. It cannot be cancelled.
func (v *Vote) Leave(ctx context.Context) {
	if v.session != nil {
		v.session.Delete(ctx, v.path)
	}
}

// Gone is never given: what has become of a vote is what Await says of the agreement.
func (*Vote) Gone() *Signal { return nil }

// Disregard does nothing.
func (*Vote) Disregard() {}
