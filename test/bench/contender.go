package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A contender is one way to lock.
type contender struct {
	name    string
	sidecar *sidecar // nil if it needs none
	servers []int    // the processes that store its locks, whose processor time counts too
	open    func(ctx context.Context, number int) (caller, error)
}

// A caller takes one lock at a time, over what it has opened for that.
type caller interface {
	lock(ctx context.Context, name string) error
	unlock(ctx context.Context) error
	close()
}

const (
	floorRoot  = "/bench/floor"
	directRoot = "/bench/direct"
	openings   = 16 // at once, so that servers' backlogs hold them
)

// The contenders that the others are compared with, by their places among those of a field.
const (
	floorPlace = iota
	directPlace
	etcdPlace
	streamPlace
	leasePlace
)

// A field is what contenders lock with. Of the zero value only names are to be had.
type field struct {
	addresses []string // of ZooKeeper's servers
	servers   []int    // their processes
	sidecar   *sidecar // in front of them
	before    *sidecar // of an older build, likewise; nil if none is measured
	etcd      *etcdCluster
}

// beforeWords begin the name of a way to lock by an older build.
const beforeWords = "before: "

// contenders are all ways to lock.
func (f field) contenders() []contender {
	all := []contender{
		floorPlace: {name: "floor", open: func(ctx context.Context, number int) (caller, error) {
			session, err := dialBare(ctx, f.addresses[number%len(f.addresses)])
			if err != nil {
				return nil, err
			}
			return &floorCaller{session: session}, nil
		}},
		directPlace: {name: "zk.Lock", open: func(ctx context.Context, _ int) (caller, error) {
			return openDirect(ctx, f.addresses)
		}},
		etcdPlace: {name: "etcd v3lock", open: func(ctx context.Context, number int) (caller, error) {
			return openEtcd(ctx, f.etcd, number)
		}},
		streamPlace: {name: streamName, sidecar: f.sidecar, open: func(ctx context.Context, _ int) (caller, error) {
			return openStream(ctx, f.sidecar)
		}},
		leasePlace: {name: leaseName, sidecar: f.sidecar, open: func(ctx context.Context, _ int) (caller, error) {
			return openLease(ctx, f.sidecar)
		}},
		{name: plainName, sidecar: f.sidecar, open: func(context.Context, int) (caller, error) {
			return openPlain(f.sidecar)
		}},
		{name: clientName, sidecar: f.sidecar, open: func(ctx context.Context, _ int) (caller, error) {
			return openClient(ctx, f.sidecar)
		}},
	}
	for i := range all {
		all[i].servers = f.servers
	}
	if f.etcd != nil {
		all[etcdPlace].servers = f.etcd.processes()
	}
	return all
}

// older are the ways to lock by a sidecar of an older build, if there is one.
func (f field) older() (all []contender) {
	if f.before == nil {
		return nil
	}
	f.sidecar = f.before
	for _, c := range f.contenders()[streamPlace:] {
		c.name = beforeWords + c.name
		all = append(all, c)
	}
	return all
}

// openAll opens as many callers. The caller must close them.
func (c contender) openAll(ctx context.Context, count int) ([]caller, error) {
	callers := make([]caller, count)
	err := eachOf(count, openings, func(i int) (err error) {
		callers[i], err = c.open(ctx, i)
		return err
	})
	if err != nil {
		closeAll(callers)
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return callers, nil
}

func closeAll(callers []caller) {
	_ = eachOf(len(callers), len(callers), func(i int) error {
		if callers[i] != nil {
			callers[i].close()
		}
		return nil
	})
}

// eachOf calls fn with every number below count, so many at once, and returns when all have returned, with their errors.
func eachOf(count, atOnce int, fn func(int) error) error {
	errs := make([]error, count)
	room := make(chan struct{}, max(1, atOnce))
	var all sync.WaitGroup
	for i := range count {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			errs[i] = fn(i)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// A directCaller uses go-zookeeper's own lock, over a session of its own.
type directCaller struct {
	session *zk.Conn
	held    *zk.Lock
}

const directBuffer = 64 << 10 // in place of 1.5 MiB, of which many callers make a measurement of memory

func openDirect(ctx context.Context, addresses []string) (caller, error) {
	session, events, err := zk.Connect(addresses, 30*time.Second, zk.WithLogInfo(false),
		zk.WithMaxBufferSize(directBuffer), zk.WithMaxConnBufferSize(directBuffer))
	if err != nil {
		return nil, err
	}
	return awaitSession(ctx, session, events)
}

func awaitSession(ctx context.Context, session *zk.Conn, events <-chan zk.Event) (caller, error) {
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return &directCaller{session: session}, nil
			}
		case <-ctx.Done():
			session.Close()
			return nil, context.Cause(ctx)
		}
	}
}

func (d *directCaller) close() { d.session.Close() }

func (d *directCaller) lock(_ context.Context, name string) error {
	d.held = zk.NewLock(d.session, directRoot+"/"+name, zk.WorldACL(zk.PermAll))
	return d.held.Lock()
}

func (d *directCaller) unlock(context.Context) error { return d.held.Unlock() }

// makeDirectories makes what bare sessions lock in; the others make theirs by themselves.
func makeDirectories(ctx context.Context, addresses, names []string) error {
	opened, err := openDirect(ctx, addresses)
	if err != nil {
		return err
	}
	defer opened.close()
	session := opened.(*directCaller).session
	paths := []string{"/bench", floorRoot}
	for _, name := range names {
		paths = append(paths, floorRoot+"/"+name)
	}
	for _, path := range paths {
		_, err := session.Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", path, err)
		}
	}
	return nil
}
