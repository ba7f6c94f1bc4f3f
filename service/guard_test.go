package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func byHold(id string) *holdv1.Guard {
	return &holdv1.Guard{Hold: &holdv1.Guard_HoldId{HoldId: id}}
}

func byTicket(lock string, token int64) *holdv1.Guard {
	return &holdv1.Guard{Hold: &holdv1.Guard_Ticket{Ticket: &holdv1.Ticket{Lock: lock, FencingToken: token}}}
}

// guarded puts a key under guards, and says what came of it.
func (r *registry) guarded(guards ...*holdv1.Guard) string {
	r.t.Helper()
	request := putOf("k", "v")
	request.Guards = guards
	if _, err := r.Put(r.context(), request); err != nil {
		return outcome(err)
	}
	return "written"
}

func TestAGuardedWriteIsMadeOnlyWhileTheHoldLasts(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	first := r.hold(r.callers, &lockv1.AcquireRequest{Name: "orders"})
	second := r.acquire(r.others, &lockv1.AcquireRequest{Name: "orders"})
	second.sees("queued 1")
	same(t, "by hold", r.guarded(byHold(first.hold)), "written")
	same(t, "by ticket", r.guarded(byTicket("orders", first.token)), "written")
	same(t, "by both", r.guarded(byTicket("orders", first.token), byHold(first.hold)), "written")
	same(t, "by what nobody holds", r.guarded(byHold(first.hold), byTicket("orders", first.token+1000)), "FailedPrecondition GUARD_LOST")

	names := r.ensemble.memory.Names("/locks/orders")
	same(t, "contenders", len(names), 2)
	waits, _ := r.ensemble.memory.Read("/locks/orders/" + names[1])
	if waits.Czxid == first.token {
		waits, _ = r.ensemble.memory.Read("/locks/orders/" + names[0])
	}
	same(t, "by one that waits", r.guarded(byTicket("orders", waits.Czxid)), "FailedPrecondition GUARD_LOST")

	first.cancel()
	second.sees("granted")
	same(t, "by an earlier hold", r.guarded(byHold(first.hold)), "FailedPrecondition GUARD_LOST")
	request := putOf("k", "v")
	request.Guards = []*holdv1.Guard{byTicket("orders", first.token)}
	_, err := r.Put(r.context(), request)
	same(t, "by its ticket", facts(err), fmt.Sprintf("current_token=%d fencing_token=%d lock=orders", second.token, first.token))
	same(t, "by somebody else's hold", r.guarded(byHold(second.hold)), "NotFound HOLD_NOT_FOUND")
	same(t, "by somebody else's ticket", r.guarded(byTicket("orders", second.token)), "written")
}

func TestATicketIsVerified(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		connection := r.connection(r.target())
		verified := func(lock string, token int64, consistency configv1.Consistency) string {
			answer, err := fencingv1.NewFencingServiceClient(connection).Verify(r.context(), &fencingv1.VerifyRequest{
				Ticket: &holdv1.Ticket{Lock: lock, FencingToken: token}, Consistency: consistency,
			})
			if err != nil {
				return outcome(err) + " " + facts(err)
			}
			return fmt.Sprint(answer.GetHeld(), answer.GetCurrentToken())
		}
		const latest, local = configv1.Consistency_CONSISTENCY_UNSPECIFIED, configv1.Consistency_CONSISTENCY_LOCAL
		same(t, "of what nobody has ever asked for", verified("orders", 7, latest), "false 0")
		first := r.hold(r.callers, &lockv1.AcquireRequest{Name: "orders"})
		second := r.acquire(r.others, &lockv1.AcquireRequest{Name: "orders"})
		second.sees("queued 1")
		for _, how := range []configv1.Consistency{latest, local} {
			same(t, "of a holder", verified("orders", first.token, how), fmt.Sprint("true ", first.token))
			same(t, "of nobody", verified("orders", first.token+9, how), fmt.Sprint("false ", first.token))
		}
		r.ensemble.Lag()
		first.cancel()
		waitUntil(t, func() bool { return r.contenders("orders") == 1 })
		same(t, "of who was a holder, as the reader shows it", verified("orders", first.token, local), fmt.Sprint("true ", first.token))
		r.ensemble.KeepUp()
		second.sees("granted")
		same(t, "of who was a holder", verified("orders", first.token, latest), fmt.Sprint("false ", second.token))
		plain, err := r.ensemble.memory.Create("/locks/plain/_c_x-lock-", nil, embedded.EphemeralSequential, 7)
		r.must(err)
		node, err := r.ensemble.memory.Read(plain)
		r.must(err)
		same(t, "of a holder whose node has a plain name", verified("plain", node.Czxid, latest), fmt.Sprint("true ", node.Czxid))
		same(t, "of one before", verified("plain", 1, latest), fmt.Sprint("false ", node.Czxid))
		same(t, "without a token", verified("orders", 0, latest),
			`InvalidArgument INVALID_FIELD ticket.fencing_token field=ticket.fencing_token rule=a hold's: larger than 0 value="0"`)
		same(t, "in what way", verified("orders", 1, 9),
			`InvalidArgument INVALID_FIELD consistency field=consistency rule=LOCAL or LINEARIZABLE value="9"`)
	})
}

// kazoo's locks take one uuid for life, so that a place has the name of an earlier one when its directory was made anew in between.
func TestOnlyAPlaceWhoseNameNeverComesAgainIsAGuard(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		for name, want := range map[string]string{
			"_c_f81d4fae-7dec-11d0-a765-00a0c91e6bf6-lock-": "written", // Sidekeeper's and Curator's
			"_c_f81d4fae7dec11d0a76500a0c91e6bf6-lock-":     "written", // go-zookeeper's
			"f81d4fae7dec11d0a76500a0c91e6bf6-lock-":        "FailedPrecondition GUARD_LOST",
			"f81d4fae7dec11d0a76500a0c91e6bf6__lock__":      "FailedPrecondition GUARD_LOST",
		} {
			lock := strings.ReplaceAll(strings.Trim(name, "_-"), "_", "")
			place, err := r.ensemble.memory.Create("/locks/"+lock+"/"+name, nil, embedded.EphemeralSequential, 7)
			r.must(err)
			node, err := r.ensemble.memory.Read(place)
			r.must(err)
			same(t, name, r.guarded(byTicket(lock, node.Czxid)), want)
		}
	})
}

func TestAWriteIsRefusedWhosePlaceGoesAfterItsGuardWasRead(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		same(t, "put", r.put("k", "old"), "v1")
		held := r.hold(r.callers, &lockv1.AcquireRequest{Name: "orders"})
		place := "/locks/orders/" + r.ensemble.memory.Names("/locks/orders")[0]
		r.ensemble.beforeCommit(func() {
			if _, err := r.ensemble.memory.NewReader().Commit(t.Context(), recipes.Delete(place, -1)); err != nil {
				t.Error(err)
			}
		})
		same(t, "guarded", r.guarded(byTicket("orders", held.token)), "FailedPrecondition GUARD_LOST")
		same(t, "written", r.get(&configv1.GetRequest{Key: "k", AsText: true}), "k=old@v1")
		same(t, "without a guard", r.guarded(), "written")
	})
}

func TestGuardsGuardEachKindOfWrite(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		held := r.hold(r.callers, &lockv1.AcquireRequest{Name: "orders"})
		same(t, "put", r.guarded(byHold(held.hold)), "written")
		r.makes("numbers")
		writes := map[string]func(guards []*holdv1.Guard) error{
			"commit": func(guards []*holdv1.Guard) error {
				operation := &configv1.Operation{Operation: &configv1.Operation_Put{Put: putOf("c", "v")}}
				return second(r.Commit(r.context(), &configv1.CommitRequest{Operations: []*configv1.Operation{operation}, Guards: guards}))
			},
			"next": func(guards []*holdv1.Guard) error {
				return second(r.sequences.Next(r.context(), &sequencev1.NextRequest{Name: "numbers", Guards: guards}))
			},
			"delete": func(guards []*holdv1.Guard) error {
				return second(r.Delete(r.context(), &configv1.DeleteRequest{Key: "k", Guards: guards}))
			},
		}
		ticket := []*holdv1.Guard{byTicket("orders", held.token)}
		lost := []*holdv1.Guard{byTicket("orders", held.token+1)}
		for what, write := range writes {
			same(t, what+" by what is lost", outcome(write(lost)), "FailedPrecondition GUARD_LOST")
			same(t, what, outcome(write(slices.Repeat(ticket, 9))), "OK") // the same one counts once
		}
		last := int64(100)
		advance := &sequencev1.AdvanceToRequest{Name: "numbers", LastIssued: &last, Guards: lost}
		same(t, "advance by what is lost", outcome(second(r.operators.sequences.AdvanceTo(r.context(), advance))), "FailedPrecondition GUARD_LOST")
		same(t, "numbers", r.next(&sequencev1.NextRequest{Name: "numbers"}), "2-2")
	})
}

func TestGuardsHaveRules(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		var seventeen []*holdv1.Guard
		for token := range int64(17) {
			seventeen = append(seventeen, byTicket("a", token+1))
		}
		for _, c := range []struct {
			guards []*holdv1.Guard
			want   string
		}{
			{seventeen, `field=guards rule=at most 16 different ones value="another one at 16"`},
			{[]*holdv1.Guard{{}}, `field=guards[0] rule=either hold_id or ticket value=""`},
			{[]*holdv1.Guard{byHold("x")}, `field=guards[0].hold_id rule=32 hexadecimal digits, in lower case value="1 bytes long"`},
			{[]*holdv1.Guard{byTicket("a", 0)}, `field=guards[0].ticket.fencing_token rule=a hold's: larger than 0 value="0"`},
			{[]*holdv1.Guard{byTicket("", 1)}, `field=guards[0].ticket.lock rule=a name has 1 to 200 bytes value=""`},
		} {
			request := putOf("k", "v")
			request.Guards = c.guards
			_, err := r.Put(r.context(), request)
			same(t, "put", facts(err), c.want)
		}
		inside := putOf("k", "v")
		inside.Guards = []*holdv1.Guard{byTicket("a", 1)}
		operation := &configv1.Operation{Operation: &configv1.Operation_Put{Put: inside}}
		_, err := r.Commit(r.context(), &configv1.CommitRequest{Operations: []*configv1.Operation{operation}})
		same(t, "inside a commit", facts(err),
			`field=operations[0].put.guards rule=none: a Commit has guards of its own value="some"`)
		_, err = r.sequences.Next(r.context(), &sequencev1.NextRequest{Name: "numbers", Ordering: relaxed, Guards: inside.GetGuards()})
		same(t, "relaxed", facts(err),
			`field=ordering rule=STRICT with guards: RELAXED numbers were reserved before value="RELAXED"`)
		_, err = r.byOperators.Delete(r.context(), &configv1.DeleteRequest{Key: "k", Recursive: true, Guards: inside.GetGuards()})
		same(t, "recursive", facts(err),
			`field=guards rule=none together with recursive, which is not one transaction value="some"`)
		same(t, "written", r.get(&configv1.GetRequest{Key: "k"}), "NotFound KEY_NOT_FOUND")
	})
}

func TestAGuardedMemberJoinsAndSaysNewsOnlyWhileTheHoldLasts(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		ticket, own := []*holdv1.Guard{byTicket("orders", held.token)}, []*holdv1.Guard{byHold(held.hold)}
		update := func(guards []*holdv1.Guard) string {
			return outcome(second(s.groups.Update(s.context(), &membershipv1.UpdateRequest{
				Group: "shop", Member: "a", Metadata: map[string]string{"port": "1"}, Guards: guards,
			})))
		}
		a := s.join(s.callers, &membershipv1.JoinRequest{Member: "a", Guards: own})
		a.sees("joined")
		same(t, "an update by hold", update(own), "OK")
		same(t, "an update by ticket", update(ticket), "OK")
		a.sees("[port:1]")
		b := s.join(s.callers, &membershipv1.JoinRequest{Member: "b", Guards: ticket})
		b.sees("joined")
		held.cancel()
		waitUntil(t, func() bool { return s.contenders("orders") == 0 })
		const lost = "FailedPrecondition GUARD_LOST"
		for _, guards := range [][]*holdv1.Guard{own, ticket} {
			same(t, "a late update", update(guards), lost)
			s.join(s.callers, &membershipv1.JoinRequest{Member: "c", Guards: guards}).sees(lost)
			s.join(s.callers, &membershipv1.JoinRequest{Member: "a", Guards: guards, OnConflict: replaces}).sees(lost)
		}
		s.join(s.callers, &membershipv1.JoinRequest{Member: "c", Guards: []*holdv1.Guard{{}}}).sees("InvalidArgument INVALID_FIELD guards[0]")
		same(t, "inside, whoever joined before stays", s.inside(), "a b")
	})
}

func TestWhoWaitsForANameJoinsOnlyIfTheHoldLastsThen(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		first := s.joined(s.callers, "a")
		<-s.ensemble.opened
		held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		<-s.ensemble.opened
		second := s.join(s.callers, &membershipv1.JoinRequest{
			Member: "a", OnConflict: waits, Guards: []*holdv1.Guard{byTicket("orders", held.token)},
		})
		s.awaitWatched(<-s.ensemble.opened)
		held.cancel()
		waitUntil(t, func() bool { return s.contenders("orders") == 0 })
		first.cancel()
		second.sees("FailedPrecondition GUARD_LOST")
		s.awaitInside("")
	})
}

func TestAPlaceThatGoesAfterItsGuardWasReadRefusesAMember(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		<-s.ensemble.opened
		place := "/locks/orders/" + s.ensemble.memory.Names("/locks/orders")[0]
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		lease.session.Before(func(o standin.Operation) error {
			if o.Name != "Create" {
				return nil
			}
			return s.ensemble.memory.Delete(place)
		})
		s.join(s.callers, &membershipv1.JoinRequest{
			Member: "a", LeaseId: lease.id, Guards: []*holdv1.Guard{byTicket("orders", held.token)},
		}).sees("FailedPrecondition GUARD_LOST")
		same(t, "inside", s.inside(), "")
	})
}
