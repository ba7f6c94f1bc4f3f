package service

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// mostEntrants bounds how many enter a double barrier together: each reads the nodes of all when it leaves.
const mostEntrants = 1000

// entranceParams is an EnterRequest whose fields are in order.
type entranceParams struct {
	heldParams

	name name
	size int
}

func parseEntrance(request *barrierv1.EnterRequest) (params entranceParams, err error) {
	if params.name, err = parseName("name", request.GetName()); err != nil {
		return params, err
	}
	if params.size = int(request.GetSize()); params.size < 1 || params.size > mostEntrants {
		return params, invalid("size", fmt.Sprint(params.size), fmt.Sprintf("from 1 to %d", mostEntrants))
	}
	params.heldParams, err = parseHeld(request)
	if err == nil && params.wait != nil && *params.wait == 0 {
		err = invalid("wait_timeout", "0s", "more than 0, or omitted")
	}
	return params, err
}

// An entranceRequest is one request to Enter. Its place is one at a double barrier, and its turn comes when enough stand there.
type entranceRequest struct {
	*held[*recipes.Entrant, *barrierv1.EnterResponse]

	params  entranceParams
	barrier recipes.Barrier

	entered recipes.Entrance
}

// Enter tells whoever is one too many so before a session is opened for it.
func (b *barrierService) Enter(request *barrierv1.EnterRequest, stream grpc.ServerStreamingServer[barrierv1.EnterResponse]) error {
	keepalive := &barrierv1.EnterResponse{Event: &barrierv1.EnterResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, b.enter)
}

func (b *barrierService) enter(request *barrierv1.EnterRequest, on line[*barrierv1.EnterResponse]) (holder, error) {
	params, err := parseEntrance(request)
	if err != nil {
		return nil, err
	}
	of := resource{kindBarrier, params.name.text}
	waits, err := b.services.waiters.enter(on.claim.goesOn(), of)
	if err != nil {
		return nil, err
	}
	e := &entranceRequest{params: params, barrier: b.barrier(params.name)}
	e.held = newHeld(b.services, on, heldRecipe[*recipes.Entrant, *barrierv1.EnterResponse]{
		heldParams: params.heldParams, heldWords: enterWords, resource: of, wait: waits, waitsFor: "wait at barrier",
		steps: e, rejoin: e, early: true, removed: errLockBroken,
		letGo: func(ctx context.Context) { e.place.Close(ctx, e.services.ensemble) },
	})
	return e.held, nil
}

var enterWords = wordsOf[*barrierv1.EnterResponse]()

func (e *entranceRequest) join(ctx context.Context, about recipes.About) (*recipes.Entrant, error) {
	return e.barrier.Join(ctx, e.lease.session, about)
}

func (e *entranceRequest) rejoin(session recipes.Adopter, standing []recipes.Standing, _ recipes.About) (*recipes.Entrant, error) {
	return e.barrier.Rejoin(session, standing[0])
}

// ask asks whether enough stand at the barrier.
func (e *entranceRequest) ask(ctx context.Context) (shown turn, err error) {
	e.entered, err = e.place.Enter(ctx, e.services.ensemble, e.params.size)
	shown = turn{granted: e.entered.Round.Number != 0, changed: []*recipes.Signal{e.entered.Changed, e.entered.Others}}
	switch {
	case err != nil:
		return turn{}, err
	case shown.granted:
		return shown, e.lease.session.Prove(ctx)
	case e.entered.Changed.IsGiven():
		return shown, nil
	case e.claim.held():
		return turn{}, errLockBroken // what opened the barrier was removed by hand
	}
	present := int32(e.entered.Present)
	shown.tell = func() {
		e.put(topicPlace, func() (*barrierv1.EnterResponse, bool) {
			waiting := &barrierv1.Waiting{Present: present}
			return &barrierv1.EnterResponse{Event: &barrierv1.EnterResponse_Waiting{Waiting: waiting}}, true
		})
	}
	return shown, nil
}

// begin makes a hold of the place. The first look is due soon.
func (e *entranceRequest) begin(context.Context) (*barrierv1.EnterResponse, nodeState) {
	id := e.beginHold(&hold{name: e.params.name, token: e.place.Token, round: e.entered.Round})
	entered := &barrierv1.Entered{HoldId: id, Token: e.place.Token, Round: e.entered.Round.Number}
	return &barrierv1.EnterResponse{Event: &barrierv1.EnterResponse_Entered{Entered: entered}}, nodeState{}
}

// look asks whether the place still stands.
func (e *entranceRequest) look(ctx context.Context) (nodeState, error) {
	changed, err := e.place.Look(ctx)
	return nodeState{changed: changed}, err
}
