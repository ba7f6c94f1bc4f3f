package recipes_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var transfers = recipes.Agreements{Path: "/agreements/transfers"}

// An agreement is one that a test looks at.
type agreement struct {
	world

	id string
}

func (w world) begin(participants ...string) agreement {
	w.Helper()
	id, err := transfers.Begin(w.living, w.NewReader(), recipes.Proposal{Participants: participants, Timeout: time.Minute})
	if err != nil {
		w.Fatal(err)
	}
	return agreement{w, id}
}

// A voter is a participant that has voted, and that waits for the decision.
type voter struct {
	session *standin.Session
	vote    *recipes.Vote
	decided
}

// vote has a participant vote with a session of its own, over which it asks for all else as well.
func (a agreement) vote(participant string) voter {
	a.Helper()
	return a.voteWith(a.session(), participant)
}

func (a agreement) voteWith(session *standin.Session, participant string) voter {
	a.Helper()
	vote, err := transfers.Vote(a.living, session, session, a.id, participant, recipes.About{Owner: participant})
	if err != nil {
		a.Fatal(err)
	}
	return voter{session, vote, a.await(session)}
}

// decided is what somebody who awaits a decision has come to, "undecided" for as long as there is none.
type decided struct {
	mu   *sync.Mutex
	text *string
}

func (a agreement) await(store recipes.Store) decided {
	made := decided{&sync.Mutex{}, new("undecided")}
	go func() {
		decision, err := transfers.Await(a.living, store, a.id)
		made.mu.Lock()
		defer made.mu.Unlock()
		*made.text = string(decision)
		if err != nil {
			*made.text = ending(err)
		}
	}()
	synctest.Wait()
	return made
}

func (d decided) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *d.text
}

// is fails the test unless all who wait, and who asks only now, have come to this.
func (a agreement) is(want string, all ...voter) {
	a.Helper()
	synctest.Wait()
	for i, v := range all {
		if got := v.String(); got != want {
			a.Errorf("voter %d: %s, want %s", i, got, want)
		}
	}
	if got := a.await(a.NewReader()).String(); got != want {
		a.Errorf("who asks late: %s, want %s", got, want)
	}
}

func TestAnAgreementIsCommittedWhenEachParticipantHasVotedAndTheDecisionStays(t *testing.T) {
	inBubble(t, func(w world) {
		a := w.begin("a", "b")
		first := a.vote("a")
		a.is("undecided", first)
		second := a.vote("b")
		a.is("COMMIT", first, second)
		first.vote.Leave(w.living)
		second.session.Expire()
		if decision, err := transfers.Abort(w.living, w.NewReader(), a.id); decision != recipes.DecisionCommit || err != nil {
			t.Errorf("asked for ABORT: %s, %v", decision, err)
		}
		time.Sleep(time.Hour)
		a.is("COMMIT", first, second, a.vote("a"))
	})
}

func TestWithoutAVoteThatStandsThereIsNoCommit(t *testing.T) {
	for name, happens := range map[string]func(a agreement, first voter){
		"the session of one ended":    func(_ agreement, first voter) { first.session.Expire() },
		"one took its vote back":      func(a agreement, first voter) { first.vote.Leave(a.living) },
		"a vote was removed by hand":  func(a agreement, _ voter) { a.delete(path.Join(transfers.Path, a.id, "vote-0")) },
		"somebody asked for ABORT":    func(a agreement, _ voter) { _, _ = transfers.Abort(a.living, a.NewReader(), a.id) },
		"a participant votes twice":   func(a agreement, _ voter) { a.vote("a") },
		"the deadline passed":         func(agreement, voter) { time.Sleep(61 * time.Second) },
		"the other one can not write": func(a agreement, _ voter) { a.voteBadly("b") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w world) {
				a := w.begin("a", "b")
				first := a.vote("a")
				watching := a.await(w.NewReader())
				happens(a, first)
				synctest.Wait()
				if got := watching.String(); got != "ABORT" {
					t.Errorf("who watched: %s", got)
				}
				a.is("ABORT", a.vote("b"))
			})
		})
	}
}

// voteBadly claims a vote and dies before it makes it.
func (a agreement) voteBadly(participant string) {
	session := a.session()
	session.Before(func(operation standin.Operation) error {
		if operation.Name == "Create" {
			session.Expire()
		}
		return nil
	})
	_, err := transfers.Vote(a.living, a.NewReader(), session, a.id, participant, recipes.About{})
	if !errors.Is(err, recipes.ErrSessionEnded) {
		a.Errorf("voted: %v", err)
	}
}

// A process is frozen when it has seen all votes, and writes COMMIT later.
func TestACommitThatComesLateIsNotCarriedOut(t *testing.T) {
	for name, meanwhile := range map[string]func(a agreement, first voter){
		"one died":                              func(_ agreement, first voter) { first.session.Expire() },
		"one died and came back under its name": func(a agreement, first voter) { first.session.Expire(); a.voteUnheard("a") },
		"it was aborted":                        func(a agreement, _ voter) { _, _ = transfers.Abort(a.living, a.NewReader(), a.id) },
		"it was aborted and forgotten":          func(a agreement, _ voter) { a.forget() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w world) {
				a := w.begin("a", "b")
				late := w.NewReader()
				ofA, ofB := w.session(), w.session()
				_, errA := transfers.Vote(w.living, ofA, ofA, a.id, "a", recipes.About{})
				_, errB := transfers.Vote(w.living, ofB, ofB, a.id, "b", recipes.About{})
				if errA != nil || errB != nil {
					t.Fatal(errA, errB)
				}
				late.Before(func(operation standin.Operation) error {
					if operation.Name == "Commit" {
						late.Before(nil)
						meanwhile(a, voter{session: ofA})
					}
					return nil
				})
				want := "ABORT"
				if strings.Contains(name, "forgotten") {
					want = recipes.ErrNoAgreement.Error()
				}
				if got := a.await(late).String(); got != want {
					t.Errorf("who wrote late: %s, want %s", got, want)
				}
				a.is(want)
			})
		})
	}
}

// forget aborts and forgets it.
func (a agreement) forget() {
	a.Helper()
	reader := a.NewReader()
	if err := transfers.Forget(a.living, reader, a.id); !errors.Is(err, recipes.ErrUndecided) {
		a.Errorf("forgotten before it is decided: %v", err)
	}
	_, aborted := transfers.Abort(a.living, reader, a.id)
	if err := errors.Join(aborted, transfers.Forget(a.living, reader, a.id)); err != nil {
		a.Error(err)
	}
}

// voteUnheard votes, and looks at nothing after that.
func (a agreement) voteUnheard(participant string) {
	session := a.session()
	if _, err := transfers.Vote(a.living, session, session, a.id, participant, recipes.About{}); err != nil {
		a.Error(err)
	}
}

// A participant's session ends when nobody looks, and another begins under its name.
func TestAParticipantThatDiedUnseenDoesNotVoteAgain(t *testing.T) {
	inBubble(t, func(w world) {
		a := w.begin("a", "b")
		dead := w.session()
		if _, err := transfers.Vote(w.living, dead, dead, a.id, "a", recipes.About{}); err != nil {
			t.Fatal(err)
		}
		dead.Expire()
		a.is("ABORT", a.vote("a"), a.vote("b"))
	})
}

func TestDecisionsAreTheSameForAllThoughRepliesAreLost(t *testing.T) {
	for lost := range 4 { // the reply to the first commit of who votes last, and so on
		for _, carriedOut := range []bool{true, false} {
			t.Run(fmt.Sprint(lost, " carried out: ", carriedOut), func(t *testing.T) {
				inBubble(t, func(w world) {
					a := w.begin("a", "b")
					first, session := a.vote("a"), w.session()
					commits := 0
					hook := func(operation standin.Operation) error {
						if operation.Name != "Commit" {
							return nil
						}
						if commits++; commits-1 == lost {
							return recipes.ErrOutcomeUnknown
						}
						return nil
					}
					session.Before(hook)
					if carriedOut {
						session.Before(nil)
						session.After(hook)
					}
					_, err := transfers.Vote(w.living, session, session, a.id, "b", recipes.About{})
					if err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
						t.Fatal(err)
					}
					second := a.await(session)
					time.Sleep(61 * time.Second)
					want := "COMMIT"
					if err != nil {
						want = "ABORT"
					}
					if second.String() != want {
						t.Errorf("who lost a reply: %s", second)
					}
					a.is(want, first)
				})
			})
		}
	}
}

func TestABeginningWhoseReplyIsLostIsSettledByReading(t *testing.T) {
	inBubble(t, func(w world) {
		w.begin("a") // the directory is made
		reader := w.NewReader()
		reader.After(func(operation standin.Operation) error {
			if operation.Name == "Commit" {
				return recipes.ErrOutcomeUnknown
			}
			return nil
		})
		id, err := transfers.Begin(w.living, reader, recipes.Proposal{Participants: []string{"a"}, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		agreement{w, id}.is("COMMIT", agreement{w, id}.vote("a"))
	})
}

func TestAbortIsSettledThoughItsReplyIsLost(t *testing.T) {
	inBubble(t, func(w world) {
		a, reader := w.begin("a"), w.NewReader()
		reader.After(func(operation standin.Operation) error {
			if operation.Name == "Commit" {
				return recipes.ErrOutcomeUnknown
			}
			return nil
		})
		if decision, err := transfers.Abort(w.living, reader, a.id); decision != recipes.DecisionAbort || err != nil {
			t.Errorf("%q, %v", decision, err)
		}
		if err := transfers.Forget(w.living, reader, a.id); err != nil {
			t.Error(err)
		}
	})
}

func TestOnlyParticipantsVoteAndForgottenAgreementsAreNotVotedIn(t *testing.T) {
	inBubble(t, func(w world) {
		a, session := w.begin("a"), w.session()
		if _, err := transfers.Vote(w.living, session, session, a.id, "b", recipes.About{}); !errors.Is(err, recipes.ErrNoParticipant) {
			t.Error(err)
		}
		session.Before(func(operation standin.Operation) error {
			if operation.Name == "Create" {
				session.Before(nil)
				a.forget()
			}
			return nil
		})
		if _, err := transfers.Vote(w.living, session, session, a.id, "a", recipes.About{}); !errors.Is(err, recipes.ErrNoAgreement) {
			t.Error(err)
		}
		a.is(recipes.ErrNoAgreement.Error())
		if err := transfers.Forget(w.living, w.NewReader(), a.id); err != nil {
			t.Errorf("forgotten twice: %v", err)
		}
	})
}

func TestDecisionsAreKeptForAnHourAfterTheirDeadline(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.begin("a")
		first.is("COMMIT", first.vote("a"))
		unseen := w.begin("a") // until its hour is over
		for range recipes.MaxAgreements - 2 {
			w.begin("a")
		}
		refused := func() {
			_, err := transfers.Begin(w.living, w.NewReader(), recipes.Proposal{Participants: []string{"a"}, Timeout: time.Minute})
			if !errors.Is(err, recipes.ErrDirectoryTooLarge) {
				t.Errorf("one too many: %v", err)
			}
		}
		refused()
		time.Sleep(time.Minute + recipes.Retention - time.Second)
		refused()
		first.is("COMMIT")
		time.Sleep(2 * time.Second)
		w.begin("a")
		first.is(recipes.ErrNoAgreement.Error())
		w.begin("a")
		unseen.is(recipes.ErrNoAgreement.Error())
		all, err := transfers.List(w.living, w.NewReader())
		if err != nil || len(all) != recipes.MaxAgreements {
			t.Errorf("%d agreements, %v", len(all), err)
		}
	})
}

// Where a quota of bytes is used up, what needs no more of them can still be written.
func TestADecisionNeedsNoMoreRoomThanItsAgreement(t *testing.T) {
	inBubble(t, func(w world) {
		committed, aborted := w.begin("a"), w.begin("a", "b")
		length := func(a agreement) int {
			node, err := w.NewReader().Get(w.living, path.Join(transfers.Path, a.id))
			if err != nil {
				t.Fatal(err)
			}
			return len(node.Data)
		}
		before := []int{length(committed), length(aborted)}
		committed.is("COMMIT", committed.vote("a"))
		time.Sleep(61 * time.Second)
		aborted.is("ABORT")
		if length(committed) > before[0] || length(aborted) > before[1] {
			t.Errorf("%d bytes before, and %d and %d after", before, length(committed), length(aborted))
		}
	})
}

func TestWhatOthersPutBesideAgreementsIsNone(t *testing.T) {
	inBubble(t, func(w world) {
		a := w.begin("a", "b")
		for i, data := range []string{
			"", "{}", "null", `{"participants":[]}`, `{"participants":["a"]}`, `{"participants":["a"],"decision":"MAYBE"}`, "\xff",
		} {
			w.make(path.Join(transfers.Path, fmt.Sprint(i)), []byte(data), embedded.Persistent, 0)
		}
		a.vote("a")
		all, err := transfers.List(w.living, w.NewReader())
		if err != nil || len(all) != 1 || !slices.Equal(all[0].Voted, []bool{true, false}) {
			t.Errorf("%+v, %v", all, err)
		}
		agreement{w, "0"}.is(recipes.ErrNoAgreement.Error())
	})
}

// Whoever asks, over whatever reader, however late, hears the same; and COMMIT only if each participant had been told that it has voted.
func TestNobodyEverHearsOfAnotherDecision(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(300) {
		inBubble(t, func(w world) {
			dice := rand.New(rand.NewPCG(seed, 1))
			a := w.begin("a", "b", "c")
			var heard []decided
			for _, participant := range []string{"a", "b", "c"} {
				session, pause := w.session(), upTo(dice, 50*time.Millisecond)
				unsteady(session, dice)
				go func() {
					time.Sleep(pause)
					_, _ = transfers.Vote(w.living, session, session, a.id, participant, recipes.About{})
				}()
				heard = append(heard, a.awaitAlways(session.Reader()))
				if dice.IntN(8) == 0 {
					time.AfterFunc(upTo(dice, 100*time.Millisecond), session.Expire)
				}
			}
			for range 2 {
				reader := w.NewReader()
				unsteady(reader, dice)
				heard = append(heard, a.awaitAlways(reader))
			}
			if dice.IntN(3) == 0 {
				time.AfterFunc(upTo(dice, 100*time.Millisecond), func() { a.voteBriefly("b") })
			}
			time.Sleep(2 * time.Minute)
			want := a.await(w.NewReader()).String()
			seen[want]++
			for i, d := range heard {
				if d.String() != want {
					t.Errorf("seed %d: observer %d heard %s, and the decision is %s", seed, i, d, want)
				}
			}
		})
	}
	if seen["COMMIT"] < 30 || seen["ABORT"] < 30 || len(seen) != 2 {
		t.Errorf("%v", seen)
	}
}

// voteBriefly votes under a name that may be another's.
func (a agreement) voteBriefly(participant string) {
	session := a.session()
	vote, err := transfers.Vote(a.living, session, session, a.id, participant, recipes.About{})
	if err == nil {
		vote.Leave(a.living)
	}
}

// awaitAlways asks again when a reply was lost.
func (a agreement) awaitAlways(store recipes.Store) decided {
	made := decided{&sync.Mutex{}, new("undecided")}
	go func() {
		decision, err := transfers.Await(a.living, store, a.id)
		for err != nil && a.living.Err() == nil {
			time.Sleep(time.Second)
			decision, err = transfers.Await(a.living, store, a.id)
		}
		made.mu.Lock()
		defer made.mu.Unlock()
		*made.text = string(decision)
	}()
	return made
}

// unsteady has requests take their time, and some replies be lost.
func unsteady(line interface {
	Delay(delay time.Duration)
	After(hook standin.Hook)
}, dice *rand.Rand,
) {
	line.Delay(upTo(dice, 20*time.Millisecond))
	mu, own := sync.Mutex{}, rand.New(rand.NewPCG(dice.Uint64(), 1))
	line.After(func(operation standin.Operation) error {
		mu.Lock()
		defer mu.Unlock()
		if operation.Name == "Commit" && own.IntN(6) == 0 {
			return recipes.ErrOutcomeUnknown
		}
		return nil
	})
}
