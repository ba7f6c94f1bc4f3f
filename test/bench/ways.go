package main

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// ways is the experiment in which one caller at a time calls in each way that there is, so that a user can tell what each costs.
type ways struct{ pairs }

const waysKey = "bench/ways"

// A callOf makes one call again and again, over a connection of its own.
type callOf struct {
	connection *grpc.ClientConn
	call       func(ctx context.Context) error
}

func (c callOf) close() { c.connection.Close() }

func (c callOf) lock(ctx context.Context, _ string) error { return c.call(ctx) }

func (callOf) unlock(context.Context) error { return nil }

// A newMember joins under another name each time, since it does not wait until it has left.
type newMember struct {
	caller

	joined int
}

func (n *newMember) lock(ctx context.Context, name string) error {
	n.joined++
	return n.caller.lock(ctx, fmt.Sprintf("%s-%d", name, n.joined))
}

// contenders are a call that does nothing, the ways to lock through this sidecar, a member, which leaves again, and the unary calls.
func (w ways) contenders(s *sidecar, echo string) []contender {
	all := []contender{{name: "gRPC echo", open: func(context.Context, int) (caller, error) {
		opened, err := openEcho(echo)
		if err != nil {
			return nil, err
		}
		taker := opened.(*echoTaker)
		return callOf{taker.connection, taker.take}, nil
	}}}
	for _, c := range (field{sidecar: s}).contenders()[streamPlace:] {
		c.name = "lock and release: " + strings.TrimPrefix(c.name, "sidecar, ")
		all = append(all, c)
	}
	joins := joinersOn(s, nil)
	member := joins[len(joins)-1]
	all = append(all, contender{name: "join: no lease", sidecar: s, open: func(ctx context.Context, number int) (caller, error) {
		opened, err := member.open(ctx, number)
		return &newMember{caller: opened}, err
	}})
	for _, number := range []sequencev1.Ordering{sequencev1.Ordering_ORDERING_STRICT, sequencev1.Ordering_ORDERING_RELAXED} {
		name := "number: " + strings.TrimPrefix(number.String(), "ORDERING_")
		all = append(all, unary(name, s, func(ctx context.Context, connection *grpc.ClientConn) error {
			_, err := sequencev1.NewSequenceServiceClient(connection).Next(ctx, &sequencev1.NextRequest{Name: sequenceName, Ordering: number})
			return err
		}))
	}
	return append(all,
		unary("configuration: Get", s, func(ctx context.Context, connection *grpc.ClientConn) error {
			_, err := configv1.NewConfigServiceClient(connection).Get(ctx, &configv1.GetRequest{Key: waysKey})
			return err
		}),
		unary("configuration: Put", s, func(ctx context.Context, connection *grpc.ClientConn) error { return putWaysKey(ctx, connection) }),
		contender{name: "configuration: Put, guarded", sidecar: s, open: func(ctx context.Context, _ int) (caller, error) {
			return openGuarded(ctx, s)
		}})
}

func putWaysKey(ctx context.Context, connection *grpc.ClientConn, guards ...*holdv1.Guard) error {
	_, err := configv1.NewConfigServiceClient(connection).Put(ctx, &configv1.PutRequest{
		Key: waysKey, Content: &configv1.PutRequest_Text{Text: "250"}, Guards: guards,
	})
	return err
}

// A guardedCall is made while a lock is held that guards it.
type guardedCall struct {
	callOf

	holder *clientCaller
}

func (g guardedCall) close() {
	g.callOf.close()
	g.holder.close()
}

func openGuarded(ctx context.Context, s *sidecar) (caller, error) {
	opened, err := openClient(ctx, s)
	if err != nil {
		return nil, err
	}
	holder := opened.(*clientCaller)
	connection, err := s.dial()
	if err == nil {
		err = holder.lock(ctx, waysKey)
	}
	if err != nil {
		holder.close()
		return nil, err
	}
	guard := &holdv1.Guard{Hold: &holdv1.Guard_HoldId{HoldId: holder.held.HoldID()}}
	return guardedCall{callOf{connection, func(ctx context.Context) error { return putWaysKey(ctx, connection, guard) }}, holder}, nil
}

func unary(name string, s *sidecar, call func(context.Context, *grpc.ClientConn) error) contender {
	return contender{name: name, sidecar: s, open: func(context.Context, int) (caller, error) {
		connection, err := s.dial()
		if err != nil {
			return nil, err
		}
		return callOf{connection, func(ctx context.Context) error { return call(ctx, connection) }}, nil
	}}
}

func (w ways) run(ctx context.Context, on *stage) (*table, error) {
	if err := makeDirectories(ctx, on.addresses(), []string{joinedGroup}); err != nil {
		return nil, err
	}
	timed, err := w.through(ctx, on, on.addresses(), w.rounds, w.batch)
	if err != nil {
		return nil, err
	}
	counted, err := w.through(ctx, on, on.ensemble.ClientAddresses(), 1, func(ctx context.Context, c contender) (batch, error) {
		callers, err := c.openAll(ctx, 1)
		if err != nil {
			return batch{}, err
		}
		defer closeAll(callers)
		if _, err := w.lockAll(ctx, callers, 10); err != nil {
			return batch{}, err
		}
		on.resetRequests()
		_, err = w.lockAll(ctx, callers, w.each)
		return batch{count: w.each, requests: on.resetRequests()}, err
	})
	if err != nil {
		return nil, err
	}
	return w.table(timed, counted), nil
}

// through has each do its batches with a sidecar in front of these addresses.
func (w ways) through(ctx context.Context, on *stage, addresses []string, rounds int,
	do func(context.Context, contender) (batch, error),
) ([][]batch, error) {
	sidecar, err := on.startSidecar(ctx, addresses)
	if err != nil {
		return nil, err
	}
	defer sidecar.stop()
	echo, err := startEcho(ctx, on.directory)
	if err != nil {
		return nil, err
	}
	defer echo.stop()
	if err := prepareNumbers(ctx, sidecar, addresses); err != nil {
		return nil, err
	}
	connection, err := sidecar.dial()
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if err := putWaysKey(ctx, connection); err != nil {
		return nil, err
	}
	return interleave(ctx, rounds, w.contenders(sidecar, echo.socket), do)
}

func (w ways) table(timed, counted [][]batch) *table {
	t := &table{header: []string{"", "p50 µs", "p99 µs", "client CPU µs", "sidecar CPU µs", "requests", "p50 ÷ echo"}}
	for i, c := range w.contenders(nil, "") {
		all := total(timed[i])
		requests := 0
		for _, count := range counted[i][0].requests {
			requests += count
		}
		t.add(c.name, microseconds(percentile(all.took, 50)), microseconds(percentile(all.took, 99)),
			perPair(all.client, all), only(i > 0, perPair(all.sidecar, all)),
			only(i > 0, fmt.Sprintf("%.2f", float64(requests)/float64(w.each))), ratio(timed[i], timed[0], batch.median))
	}
	return t
}
