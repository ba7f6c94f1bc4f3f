package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

const mostGuards = 16

// A guard is a hold that must last for a write to be carried out.
type guard struct {
	lock  name // or queue
	token int64
	place recipes.Guard
	kind  string // kindQueue of a delivery
}

func (g guard) String() string { return g.lock.text + ":" + strconv.FormatInt(g.token, 10) }

// guards are those of one write.
type guards struct {
	services *Services
	all      []guard
}

// parseGuards finds the holds that guard a write. One that does not last is errGuardLost.
func (s *Services) parseGuards(ctx context.Context, wire []*holdv1.Guard) (of guards, err error) {
	var kept []int // each another one: whoever guards the body of a loop may name a hold again and again
	for i, from := range wire {
		if !slices.ContainsFunc(kept, func(before int) bool { return proto.Equal(wire[before], from) }) {
			kept = append(kept, i)
		}
		if len(kept) > mostGuards {
			return of, invalid("guards", fmt.Sprintf("another one at %d", i), fmt.Sprintf("at most %d different ones", mostGuards))
		}
	}
	of = guards{services: s}
	for _, i := range kept {
		found, err := s.guardsOf(ctx, fmt.Sprintf("guards[%d]", i), wire[i])
		if err != nil {
			return guards{}, err
		}
		of.all = append(of.all, found...)
	}
	if len(of.all) > 0 {
		trace.SpanFromContext(ctx).SetAttributes(attribute.StringSlice("sidekeeper.guards", of.texts()))
	}
	return of, nil
}

// guardsOf is one guard of a request: several, of a hold of several locks.
func (s *Services) guardsOf(ctx context.Context, field string, from *holdv1.Guard) ([]guard, error) {
	switch hold := from.GetHold().(type) {
	case *holdv1.Guard_HoldId:
		return s.guardsOfHold(ctx, field+".hold_id", hold.HoldId)
	case *holdv1.Guard_Ticket:
		found, err := s.guardOfTicket(ctx, field+".ticket", hold.Ticket)
		return []guard{found}, err
	}
	return nil, invalid(field, "", "either hold_id or ticket")
}

func (s *Services) guardsOfHold(ctx context.Context, field, id string) ([]guard, error) {
	found, ended, err := s.findHold(ctx, kindLock, field, id)
	if errors.Is(err, errHoldNotFound) {
		found, ended, err = s.findHold(ctx, kindQueue, field, id)
	}
	switch {
	case err != nil:
		return nil, err
	case ended != nil:
		facts := map[string]string{"fencing_token": strconv.FormatInt(ended.token, 10)}
		return nil, &detailedError{kind: recipes.ErrGuardLost, facts: facts, text: "the hold has ended with " + endOf(ended.why)}
	}
	return append([]guard{{found.name, found.token, found.place, found.kind}}, found.also...), nil
}

// parseTicket is what a ticket says. Its place is not looked for.
func parseTicket(field string, ticket *holdv1.Ticket) (guard, error) {
	lock, err := parseName(field+".lock", ticket.GetLock())
	if err != nil {
		return guard{}, err
	}
	token := ticket.GetFencingToken()
	if token <= 0 {
		return guard{}, invalid(field+".fencing_token", strconv.FormatInt(token, 10), "a hold's: larger than 0")
	}
	return guard{lock: lock, token: token}, nil
}

func (s *Services) guardOfTicket(ctx context.Context, field string, ticket *holdv1.Ticket) (guard, error) {
	made, err := parseTicket(field, ticket)
	if err != nil {
		return guard{}, err
	}
	for _, late := range []bool{true, false} { // what the reader shows may be late
		if !late {
			if err := s.ensemble.CatchUp(ctx); err != nil {
				return guard{}, err
			}
		}
		made.place, err = s.lockDirectory().lock(made.lock).Guard(ctx, s.ensemble, made.token)
		if !errors.Is(err, recipes.ErrTokenMismatch) {
			return made, err
		}
	}
	return guard{}, s.guardLost(ctx, made)
}

// guardLost says that a guard's hold has ended, and who holds its lock instead.
func (s *Services) guardLost(ctx context.Context, lost guard) error {
	if lost.kind == kindQueue {
		facts := map[string]string{"queue": lost.lock.text, "fencing_token": strconv.FormatInt(lost.token, 10)}
		return &detailedError{kind: recipes.ErrGuardLost, facts: facts, text: "the delivery from queue " + lost.lock.text + " has ended"}
	}
	facts := map[string]string{"lock": lost.lock.text, "fencing_token": strconv.FormatInt(lost.token, 10)}
	text := "lock " + lost.lock.text + " is not held with fencing token " + facts["fencing_token"]
	if view, err := s.lockDirectory().lock(lost.lock).View(ctx, s.ensemble); err == nil && len(view.Holders) > 0 {
		facts["current_token"] = strconv.FormatInt(view.Holders[0].Token, 10)
		text += ", but with " + facts["current_token"]
	}
	return &detailedError{kind: recipes.ErrGuardLost, facts: facts, text: text}
}

// meaning says of a write that was refused which guard was lost.
func (g guards) meaning(ctx context.Context, err error) error {
	lost, is := errors.AsType[*recipes.GuardLost](err)
	if !is || errors.Is(err, recipes.ErrOutcomeUnknown) {
		return err
	}
	_ = g.services.ensemble.CatchUp(ctx) // for what is told beside it alone: the write is refused
	return g.services.guardLost(ctx, g.all[lost.Index])
}

// over is a store whose transactions the guards guard.
func (g guards) over(store recipes.Store) recipes.Store { return recipes.Guarded(store, g.places()) }

func (g guards) places() []recipes.Guard {
	return each(g.all, func(of guard) recipes.Guard { return of.place })
}

// key is the same for writes with equal guards.
func (g guards) key() string {
	var key strings.Builder
	for _, of := range g.all {
		key.WriteString(of.place.Path + "\n")
	}
	return key.String()
}

func (g guards) texts() []string { return each(g.all, guard.String) }

// field tells of the guards in the audit.
func (g guards) field() zap.Field {
	if len(g.all) == 0 {
		return zap.Skip()
	}
	return zap.Strings("guards", g.texts())
}
