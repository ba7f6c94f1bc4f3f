package service

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/grpc"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// mostLocks bounds how many locks one caller takes at once: each has a node of its own in one transaction.
const mostLocks = 16

// acquireAllParams is an AcquireAllRequest whose fields are in order.
type acquireAllParams struct {
	heldParams

	names []name
	modes []recipes.Mode
}

func parseAcquireAll(request *lockv1.AcquireAllRequest) (params acquireAllParams, err error) {
	if count := len(request.GetLocks()); count == 0 || count > mostLocks {
		return params, invalid("locks", strconv.Itoa(count)+" locks", "from 1 to "+strconv.Itoa(mostLocks)+" locks")
	}
	seen := map[string]bool{}
	for i, wanted := range request.GetLocks() {
		field := fmt.Sprintf("locks[%d]", i)
		wantedName, err := parseName(field+".name", wanted.GetName())
		if err != nil {
			return params, err
		}
		if seen[wantedName.text] {
			return params, invalid(field+".name", wantedName.text, "another one for each lock")
		}
		seen[wantedName.text] = true
		mode, err := parseMode(wanted.GetMode())
		if err != nil {
			return params, err
		}
		params.names, params.modes = append(params.names, wantedName), append(params.modes, mode)
	}
	params.heldParams, err = parseQueued(request)
	return params, err
}

// A locksRequest is one request for several locks. Its place is one in each of several queues.
type locksRequest struct {
	*held[*recipes.Places, *lockv1.AcquireAllResponse]

	params acquireAllParams
	wanted []recipes.Wanted

	turn recipes.AllTurn // as they stood last
	news queueNews[*lockv1.AcquireAllResponse]
}

// AcquireAll waits for several locks and holds them. It tells whoever is one too many for one of the queues so before a session is opened
// for it.
func (l *lockService) AcquireAll(request *lockv1.AcquireAllRequest, stream grpc.ServerStreamingServer[lockv1.AcquireAllResponse]) error {
	keepalive := &lockv1.AcquireAllResponse{Event: &lockv1.AcquireAllResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, l.acquireAll)
}

func (l *lockService) acquireAll(request *lockv1.AcquireAllRequest, on line[*lockv1.AcquireAllResponse]) (holder, error) {
	params, err := parseAcquireAll(request)
	if err != nil {
		return nil, err
	}
	of := each(params.names, func(n name) resource { return resource{kindLock, n.text} })
	a := &locksRequest{params: params}
	for i, n := range params.names {
		a.wanted = append(a.wanted, recipes.Wanted{Lock: l.directory.lock(n), Mode: params.modes[i]})
	}
	waits, err := l.services.waiters.enter(on.claim.goesOn(), of...)
	if err != nil {
		return nil, err
	}
	a.held = newHeld(l.services, on, heldRecipe[*recipes.Places, *lockv1.AcquireAllResponse]{
		heldParams: params.heldParams, heldWords: acquireAllWords, resource: of[0], also: of[1:], wait: waits, waitsFor: "wait for the locks",
		steps: a, rejoin: a, removed: errLockBroken, revoked: errLockRevoked, refused: errLockHeld,
	})
	return a.held, nil
}

var acquireAllWords = wordsOf[*lockv1.AcquireAllResponse]()

// join takes a place in each queue.
func (a *locksRequest) join(ctx context.Context, about recipes.About) (*recipes.Places, error) {
	return recipes.JoinAll(ctx, a.lease.session, a.wanted, about)
}

func (a *locksRequest) rejoin(session recipes.Adopter, standing []recipes.Standing, about recipes.About) (*recipes.Places, error) {
	return recipes.RejoinAll(session, standing, a.wanted, about)
}

// ask asks whether all of the locks can be granted, and has that done.
func (a *locksRequest) ask(ctx context.Context) (shown turn, err error) {
	if a.turn.Changed == nil || a.turn.Changed.IsGiven() || a.turn.Delay > 0 {
		a.turn, err = a.place.Look(ctx, a.services.ensemble)
	}
	shown = turn{granted: a.turn.Granted, changed: []*recipes.Signal{a.turn.Changed}, pause: a.turn.Delay}
	switch {
	case err != nil:
		at := a.turn.At
		a.turn = recipes.AllTurn{}
		return turn{}, Naming(err, []string{a.params.names[at].text})
	case a.turn.Asked.Break:
		return turn{}, errLockBroken
	case a.turn.Granted, a.turn.Delay == 0 && a.turn.Changed.IsGiven():
		return shown, nil
	case a.claim.held(): // it stands where it stood, and others are before it: it never was its turn
		return turn{}, errLockBroken
	case a.params.once:
		return turn{}, heldBy(firstHolders(a.turn.Turns))
	case a.turn.Delay > 0:
		return shown, nil
	}
	if a.news.isDue(farthest(a.turn.Turns)) {
		turns, err := a.place.Glance(ctx)
		if err != nil {
			return turn{}, err
		}
		a.turn.Turns = turns
		queued := a.queued(turns)
		shown.tell = a.news.tell(a.put, farthest(turns), queued, func() *lockv1.AcquireAllResponse {
			return &lockv1.AcquireAllResponse{Event: &lockv1.AcquireAllResponse_Queued{Queued: queued}}
		})
	}
	shown.pause = a.news.left(farthest(a.turn.Turns))
	return shown, nil
}

// firstHolders are those of the first lock that is waited for.
func firstHolders(turns []recipes.Turn) []recipes.Contender {
	for _, turn := range turns {
		if !turn.First {
			return turn.Holders
		}
	}
	return nil
}

// farthest is the greatest distance from a turn.
func farthest(turns []recipes.Turn) (position int) {
	for _, turn := range turns {
		position = max(position, turn.Position)
	}
	return position
}

func (a *locksRequest) queued(turns []recipes.Turn) *lockv1.AllQueued {
	queued := &lockv1.AllQueued{}
	for i, turn := range turns {
		if !turn.First {
			queued.Locks = append(queued.Locks, &lockv1.QueuedLock{Name: a.params.names[i].text, Position: int32(turn.Position)})
		}
	}
	return queued
}

// begin makes one hold of the granted places. All of them were made by one transaction, hence have one token.
func (a *locksRequest) begin(ctx context.Context) (*lockv1.AcquireAllResponse, nodeState) {
	granted, made := &lockv1.AllGranted{}, &hold{}
	for i, place := range a.place.Guards() {
		of := guard{lock: a.params.names[i], token: place.Token, place: place}
		granted.Locks = append(granted.Locks, &lockv1.GrantedLock{Name: of.lock.text, FencingToken: of.token})
		if i == 0 {
			made.name, made.token, made.place = of.lock, of.token, place
		} else {
			made.also = append(made.also, of)
		}
	}
	granted.HoldId = a.beginHold(made)
	tellGrant(ctx, made.token)
	return &lockv1.AcquireAllResponse{Event: &lockv1.AcquireAllResponse_Granted{Granted: granted}}, a.asks(a.place.Asked())
}

// look asks what is asked of the hold.
func (a *locksRequest) look(ctx context.Context) (nodeState, error) {
	revocation, changed, err := a.place.LookAgain(ctx)
	return a.asks(revocation, changed), err
}
