package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/grpc"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// joinersOn are all ways to join a group, in the places of the ways to lock.
func joinersOn(s *sidecar, addresses []string) []contender {
	return []contender{
		floorPlace: {name: "floor", open: func(_ context.Context, number int) (caller, error) {
			return &floorJoiner{address: addresses[number%len(addresses)]}, nil
		}},
		directPlace: {name: "go-zookeeper", open: func(context.Context, int) (caller, error) {
			return &directJoiner{open: func(ctx context.Context) (caller, error) { return openAsItComes(ctx, addresses) }}, nil
		}},
		{name: "go-zookeeper, 64 KiB", open: func(context.Context, int) (caller, error) {
			return &directJoiner{open: func(ctx context.Context) (caller, error) { return openDirect(ctx, addresses) }}, nil
		}},
		{name: "sidecar, a connection each", sidecar: s, open: func(context.Context, int) (caller, error) {
			return &sidecarJoiner{sidecar: s}, nil
		}},
		{name: "sidecar", sidecar: s, open: func(context.Context, int) (caller, error) {
			connection, err := s.dial()
			if err != nil {
				return nil, err
			}
			return &sidecarJoiner{sidecar: s, kept: connection}, nil
		}},
	}
}

// A sidecarJoiner joins each time with a lease of the call's own, over a connection that it keeps or another one each time.
type sidecarJoiner struct {
	sidecar *sidecar
	kept    *grpc.ClientConn // or nil
	used    *grpc.ClientConn
	stream  grpc.ServerStreamingClient[membershipv1.JoinResponse]
	end     context.CancelFunc
}

func (j *sidecarJoiner) close() {
	if j.kept != nil {
		j.kept.Close()
	}
}

func (j *sidecarJoiner) lock(ctx context.Context, name string) (err error) {
	if j.used = j.kept; j.used == nil {
		if j.used, err = j.sidecar.dial(); err != nil {
			return err
		}
	}
	ctx, j.end = context.WithCancel(ctx)
	stream, err := membershipv1.NewMembershipServiceClient(j.used).Join(ctx, &membershipv1.JoinRequest{Group: joinedGroup, Member: name})
	if err != nil {
		return err
	}
	j.stream = stream
	_, err = stream.Recv() // nothing comes before joined
	return err
}

// unlock leaves, without waiting until the ensemble knows.
func (j *sidecarJoiner) unlock(context.Context) error {
	j.end()
	_, err := j.stream.Recv()
	if err == nil {
		return errors.New("the stream goes on")
	}
	if j.kept == nil {
		return j.used.Close()
	}
	return nil
}

// A directJoiner opens a session with go-zookeeper each time.
type directJoiner struct {
	open    func(context.Context) (caller, error)
	session *directCaller
}

// openAsItComes opens a session with the buffers that go-zookeeper has if it is told nothing.
func openAsItComes(ctx context.Context, addresses []string) (caller, error) {
	session, events, err := zk.Connect(addresses, 30*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	return awaitSession(ctx, session, events)
}

func (d *directJoiner) close() {}

func (d *directJoiner) lock(ctx context.Context, name string) error {
	opened, err := d.open(ctx)
	if err != nil {
		return err
	}
	d.session = opened.(*directCaller)
	path := floorRoot + "/" + joinedGroup + "/" + name
	_, err = d.session.session.Create(path, []byte("{}"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	return err
}

func (d *directJoiner) unlock(context.Context) error {
	d.session.close()
	return nil
}

// A floorJoiner opens a session, makes a node and closes the session, with nothing else on the wire.
type floorJoiner struct {
	address string
	session *bare
}

func (f *floorJoiner) close() {}

func (f *floorJoiner) lock(ctx context.Context, _ string) (err error) {
	if f.session, err = dialBare(ctx, f.address); err != nil {
		return err
	}
	f.session.request(link.Create, createBody(floorRoot+"/"+joinedGroup+"/m-"))
	if err := f.session.flush(); err != nil {
		return err
	}
	if _, code, err := f.session.reply(); err != nil || code != 0 {
		return fmt.Errorf("create: code %d: %w", code, err)
	}
	return nil
}

func (f *floorJoiner) unlock(context.Context) error {
	f.session.close()
	return nil
}
