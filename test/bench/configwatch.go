package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/grpc"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
)

// A hearing is what watchers have heard of an update.
type hearing struct {
	watchers int

	mu      sync.Mutex
	awaited string
	missing int
	all     chan struct{} // closed when all have heard what is awaited
	failed  chan error
	turn    int
}

func newHearing(watchers int) *hearing {
	return &hearing{watchers: watchers, failed: make(chan error, watchers)}
}

// expect begins to wait for a value.
func (h *hearing) expect(value string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaited, h.missing, h.all = value, h.watchers, make(chan struct{})
	return h.all
}

// told is called by a watcher that has a value.
func (h *hearing) told(value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if value != h.awaited {
		return
	}
	if h.missing--; h.missing == 0 {
		close(h.all)
	}
}

// update makes updates, one after the other, and tells how long each took until all had heard of it.
func (h *hearing) update(ctx context.Context, by setter, updates int) ([]time.Duration, error) {
	took := make([]time.Duration, 0, updates)
	for range updates {
		h.turn++
		value := strconv.Itoa(h.turn)
		all := h.expect(value)
		began := time.Now()
		if err := by.set(ctx, value); err != nil {
			return nil, fmt.Errorf("set: %w", err)
		}
		select {
		case <-all:
			took = append(took, time.Since(began))
		case err := <-h.failed:
			return nil, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return took, nil
}

// sessionsRing watches with go-zookeeper, over a session for each watcher.
type sessionsRing struct {
	sessions []caller
	end      chan struct{}
	watching sync.WaitGroup
}

const watchedPath = "/bench/watched"

func openSessions(ctx context.Context, addresses []string, watchers int, heard *hearing) (setter, error) {
	r := &sessionsRing{sessions: make([]caller, watchers+1), end: make(chan struct{})}
	err := eachOf(len(r.sessions), openings, func(i int) (err error) {
		r.sessions[i], err = openDirect(ctx, addresses)
		return err
	})
	if err == nil {
		_, err = r.session(0).Create(watchedPath, nil, 0, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNodeExists) {
			_, err = r.session(0).Set(watchedPath, nil, -1)
		}
	}
	if err != nil {
		r.close()
		return nil, err
	}
	begun := make(chan error, watchers)
	for i := range watchers {
		r.watching.Go(func() { r.follow(r.session(i+1), heard, begun) })
	}
	for range watchers {
		err = errors.Join(err, <-begun)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *sessionsRing) session(i int) *zk.Conn { return r.sessions[i].(*directCaller).session }

// follow reads the node with a watch, and again whenever it has changed.
func (r *sessionsRing) follow(session *zk.Conn, heard *hearing, begun chan<- error) {
	for turn := 0; ; turn++ {
		data, _, changed, err := session.GetW(watchedPath)
		switch {
		case turn == 0:
			begun <- err
		case err != nil:
			heard.failed <- err
		default:
			heard.told(string(data))
		}
		if err != nil {
			return
		}
		select {
		case <-changed:
		case <-r.end:
			return
		}
	}
}

func (r *sessionsRing) set(_ context.Context, value string) error {
	_, err := r.session(0).Set(watchedPath, []byte(value), -1)
	return err
}

func (r *sessionsRing) close() {
	close(r.end)
	r.watching.Wait()
	closeAll(r.sessions)
}

// watchesRing watches through a sidecar.
type watchesRing struct {
	connections []*grpc.ClientConn
	stop        context.CancelFunc
	watching    sync.WaitGroup
}

const watchedKey = "bench/watched"

func openWatches(ctx context.Context, s *sidecar, watchers, connections int, heard *hearing) (setter, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &watchesRing{stop: stop}
	for range connections + 1 {
		connection, err := s.dial()
		if err != nil {
			r.close()
			return nil, err
		}
		r.connections = append(r.connections, connection)
	}
	if err := r.set(ctx, ""); err != nil {
		r.close()
		return nil, err
	}
	err := eachOf(watchers, openings, func(i int) error {
		return r.follow(ctx, r.connections[1+i%connections], heard)
	})
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// follow returns when the stream has sent what there is.
func (r *watchesRing) follow(ctx context.Context, connection *grpc.ClientConn, heard *hearing) error {
	request := &configv1.WatchRequest{Keys: []string{watchedKey}}
	stream, err := configv1.NewConfigServiceClient(connection).Watch(ctx, request, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		if message.GetSynced() != nil {
			break
		}
	}
	r.watching.Go(func() {
		for {
			message, err := stream.Recv()
			if err != nil {
				if ctx.Err() == nil {
					heard.failed <- err
				}
				return
			}
			for _, change := range message.GetChanges().GetChanges() {
				heard.told(string(change.GetPut().GetEntry().GetValue()))
			}
		}
	})
	return nil
}

func (r *watchesRing) set(ctx context.Context, value string) error {
	_, err := configv1.NewConfigServiceClient(r.connections[0]).Put(ctx, &configv1.PutRequest{
		Key: watchedKey, Content: &configv1.PutRequest_Value{Value: []byte(value)},
	}, grpc.WaitForReady(true))
	return err
}

func (r *watchesRing) close() {
	r.stop()
	r.watching.Wait()
	for _, connection := range r.connections {
		connection.Close()
	}
}
