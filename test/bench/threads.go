package main

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// threads is the experiment in which the threads of one application acquire and release, each a lock of its own, all over one session.
type threads struct{ pairs }

func (p threads) run(ctx context.Context, on *stage) (*table, error) {
	if err := makeDirectories(ctx, on.addresses(), p.locks()); err != nil {
		return nil, err
	}
	field, err := on.startField(ctx)
	if err != nil {
		return nil, err
	}
	defer field.stop()
	contenders := []contender{
		floorPlace:  {name: "floor", servers: field.servers, open: shared(field.openFloor)},
		directPlace: {name: "etcd v3lock", servers: field.etcd.processes(), open: shared(field.openEtcd)},
		{name: streamName, sidecar: field.sidecar, servers: field.servers, open: shared(field.openStream)},
		{name: clientName, sidecar: field.sidecar, servers: field.servers, open: shared(field.openClient)},
	}
	batches, err := interleave(ctx, p.rounds, contenders, p.batch)
	if err != nil {
		return nil, err
	}
	if err := p.profile(ctx, on, contenders[2], "threads"); err != nil {
		return nil, err
	}
	t := &table{header: []string{
		"", "p50 µs", "p99 µs", "pairs/s", "client CPU µs", "sidecar CPU µs", "CPU µs in all", "rate ÷ floor", "rate ÷ v3lock", "CPU ÷ v3lock",
	}}
	for i, c := range contenders {
		all := total(batches[i])
		t.add(c.name, microseconds(percentile(all.took, 50)), microseconds(percentile(all.took, 99)), fmt.Sprintf("%.0f", all.rate()),
			perPair(all.client, all), only(c.sidecar != nil, perPair(all.sidecar, all)), fmt.Sprintf("%.0f", 1e6*all.cost()),
			ratio(batches[i], batches[floorPlace], batch.rate), ratio(batches[i], batches[directPlace], batch.rate),
			ratio(batches[i], batches[directPlace], batch.cost))
	}
	return t, nil
}

// An application opens callers over what it has opened once. The last of them to be closed closes that.
type application interface {
	thread() caller
	close()
}

// shared opens callers of one application.
func shared(begin func(ctx context.Context) (application, error)) func(context.Context, int) (caller, error) {
	var mu sync.Mutex
	var of application
	open := 0
	return func(ctx context.Context, _ int) (_ caller, err error) {
		mu.Lock()
		defer mu.Unlock()
		if open == 0 {
			if of, err = begin(ctx); err != nil {
				return nil, err
			}
		}
		open++
		return &thread{of.thread(), func() {
			mu.Lock()
			defer mu.Unlock()
			if open--; open == 0 {
				of.close()
			}
		}}, nil
	}
}

type thread struct {
	caller

	left func()
}

func (t *thread) close() { t.left() }

// A floorApplication has many requests under way over one session. Answers come in the order of the requests.
type floorApplication struct {
	session *bare
	mu      sync.Mutex
	asked   chan chan floorAnswer
}

type floorAnswer struct {
	body []byte
	code int32
	err  error
}

const mostUnderWay = 1024

func (f field) openFloor(ctx context.Context) (application, error) {
	session, err := dialBare(ctx, f.addresses[0])
	if err != nil {
		return nil, err
	}
	a := &floorApplication{session: session, asked: make(chan chan floorAnswer, mostUnderWay)}
	go func() {
		for answered := range a.asked {
			var answer floorAnswer
			answer.body, answer.code, answer.err = session.reply()
			answered <- answer
		}
	}()
	return a, nil
}

func (a *floorApplication) thread() caller { return &floorThread{application: a} }

func (a *floorApplication) close() {
	close(a.asked)
	a.session.conn.Close()
}

type floorThread struct {
	application *floorApplication
	path        string
}

func (*floorThread) close() {}

// ask sends what is asked in one write, and returns the answer to the first of the requests when all have one.
func (t *floorThread) ask(requests ...func(*bare)) (first floorAnswer, err error) {
	answered := make(chan floorAnswer, len(requests))
	a := t.application
	a.mu.Lock()
	for _, request := range requests {
		request(a.session)
		a.asked <- answered
	}
	err = a.session.flush()
	a.mu.Unlock()
	for i := range requests {
		answer := <-answered
		if i == 0 {
			first = answer
		}
		if err == nil && (answer.err != nil || answer.code != 0) {
			err = refused("request", answer.code, answer.err)
		}
	}
	return first, err
}

func (t *floorThread) lock(_ context.Context, name string) error {
	directory := floorRoot + "/" + name
	created, err := t.ask(
		func(b *bare) { b.request(link.Create, createBody(directory+"/lock-")) },
		func(b *bare) { b.request(link.GetChildren, readBody(directory, false)) })
	if err != nil {
		return err
	}
	t.path, _ = cutString(created.body)
	return nil
}

func (t *floorThread) unlock(context.Context) error {
	_, err := t.ask(func(b *bare) { b.request(link.Delete, deleteBody(t.path)) })
	return err
}

// An etcdApplication has one lease, and one connection.
type etcdApplication struct{ etcdCaller }

func (f field) openEtcd(ctx context.Context) (application, error) {
	opened, err := openEtcd(ctx, f.etcd, 0)
	if err != nil {
		return nil, err
	}
	return &etcdApplication{*opened.(*etcdCaller)}, nil
}

func (a *etcdApplication) thread() caller {
	return &etcdCaller{connection: a.connection, lease: a.lease}
}

// A streamApplication has many locks on one stream.
type streamApplication struct {
	*streamCaller

	sending sync.Mutex
	mu      sync.Mutex
	waiting map[uint64]chan *leasev1.MultiplexResponse
}

func (f field) openStream(ctx context.Context) (application, error) {
	opened, err := openStream(ctx, f.sidecar)
	if err != nil {
		return nil, err
	}
	a := &streamApplication{streamCaller: opened.(*streamCaller), waiting: map[uint64]chan *leasev1.MultiplexResponse{}}
	go a.read()
	return a, nil
}

func (a *streamApplication) close() {
	a.cancel()
	a.connection.Close()
}

func (a *streamApplication) read() {
	for {
		response, err := a.stream.Recv()
		if err != nil {
			return
		}
		a.mu.Lock()
		waiting := a.waiting[max(response.GetEvent().GetRequestId(), response.GetEnded().GetRequestId())]
		a.mu.Unlock()
		if waiting != nil {
			waiting <- response
		}
	}
}

func (a *streamApplication) thread() caller { return &streamThread{application: a} }

type streamThread struct {
	application *streamApplication
	request     uint64
	answers     chan *leasev1.MultiplexResponse
}

func (*streamThread) close() {}

func (t *streamThread) send(request *leasev1.MultiplexRequest) error {
	t.application.sending.Lock()
	defer t.application.sending.Unlock()
	return t.application.stream.Send(request)
}

func (t *streamThread) lock(_ context.Context, name string) error {
	a := t.application
	t.answers = make(chan *leasev1.MultiplexResponse, 4)
	a.mu.Lock()
	a.streamCaller.request++
	t.request = a.streamCaller.request
	a.waiting[t.request] = t.answers
	a.mu.Unlock()
	err := t.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: &leasev1.Start{
		RequestId: t.request, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: name}},
	}}})
	if err != nil {
		return err
	}
	if answer := <-t.answers; answer.GetEvent().GetAcquire().GetGranted() == nil {
		return fmt.Errorf("got %v, not granted", answer)
	}
	return nil
}

func (t *streamThread) unlock(context.Context) error {
	a := t.application
	err := t.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: t.request}}})
	if err != nil {
		return err
	}
	ended := (<-t.answers).GetEnded()
	a.mu.Lock()
	delete(a.waiting, t.request)
	a.mu.Unlock()
	if ended == nil || codes.Code(ended.GetCode()) != codes.OK {
		return fmt.Errorf("got %v, not the end", ended)
	}
	return nil
}

// A clientApplication has one lease of a Go client.
type clientApplication struct{ *clientCaller }

func (f field) openClient(ctx context.Context) (application, error) {
	opened, err := openClient(ctx, f.sidecar)
	if err != nil {
		return nil, err
	}
	return &clientApplication{opened.(*clientCaller)}, nil
}

func (a *clientApplication) thread() caller {
	return &clientCaller{client: a.client, lease: a.lease}
}
