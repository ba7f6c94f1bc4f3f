package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// modes are the recipes of Sidekeeper.
var modes = map[string]sidekeeper.Mode{
	"mutex": sidekeeper.Exclusive, "read": sidekeeper.Read, "write": sidekeeper.Write,
}

// callers hold locks through sidecars, one contender after the other through the next of them.
type callers struct {
	clients []*sidekeeper.Client
	claims  []lockv1.LockServiceClient // of the same sidecars
	made    int
}

// claimed are the recipes of claims.
var claimed = map[string]holdv1.Mode{
	"claim": holdv1.Mode_MODE_EXCLUSIVE, "claim-read": holdv1.Mode_MODE_READ, "claim-write": holdv1.Mode_MODE_WRITE,
}

func openSidekeeper(addresses []string) (library, error) {
	c := &callers{}
	for _, address := range addresses {
		client, err := sidekeeper.Dial(address)
		if err != nil {
			return nil, err
		}
		connection, err := grpc.NewClient("unix:"+strings.TrimPrefix(address, "unix://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		c.clients, c.claims = append(c.clients, client), append(c.claims, lockv1.NewLockServiceClient(connection))
	}
	return c, nil
}

// contender makes every second one with a lease that it keeps from one hold to the next.
func (c *callers) contender(recipe, path string, alone bool) (contender, error) {
	for _, root := range []string{lockRoot, semaphoreRoot, barrierRoot} {
		path = strings.TrimPrefix(path, root)
	}
	name, err := url.PathUnescape(path)
	if err != nil {
		return nil, err
	}
	made := &caller{client: c.clients[c.made%len(c.clients)], claims: c.claims[c.made%len(c.claims)], name: name, recipe: recipe, number: c.made}
	if alone && c.made/len(c.clients)%2 == 1 {
		made.lease, err = made.client.OpenLease(context.Background(), sidekeeper.LeaseOptions{})
	}
	c.made++
	return made, err
}

func (c *callers) close() {
	for _, client := range c.clients {
		_ = client.Close()
	}
}

type caller struct {
	client *sidekeeper.Client
	claims lockv1.LockServiceClient
	name   string
	recipe string
	number int
	lease  *sidekeeper.Lease
	rounds int // of a double barrier
	held   interface {
		Release(ctx context.Context) error
	}
}

func (c *caller) acquire(ctx context.Context) (err error) {
	switch c.recipe {
	case "permits", "permit":
		c.held, err = c.client.AcquirePermits(ctx, c.name, sidekeeper.PermitsOptions{Lease: c.lease, Owner: "a peer"})
		return err
	case "candidate":
		c.held, err = c.client.Campaign(ctx, c.name, sidekeeper.CampaignOptions{Lease: c.lease, Candidate: fmt.Sprint("peer-", c.number)})
		return err
	case "entry", "meeting":
		return c.enter(ctx)
	case "claim", "claim-read", "claim-write":
		return c.claim(ctx)
	}
	c.held, err = c.client.Acquire(ctx, c.name, sidekeeper.LockOptions{Mode: modes[c.recipe], Lease: c.lease, Owner: "a peer"})
	if errors.Is(err, sidekeeper.ErrLockKindMismatch) {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// claim holds the lock without a process.
func (c *caller) claim(ctx context.Context) error {
	standing := claim{c.claims, fmt.Sprintf("%032x", rand.Uint64())}
	_, err := c.claims.Claim(ctx, &lockv1.ClaimRequest{
		Name: c.name, ClaimId: standing.id, Mode: claimed[c.recipe], ReserveFor: durationpb.New(time.Hour), Reason: "a test", Owner: "a peer",
	})
	c.held = standing
	return err
}

// A claim is one that stands.
type claim struct {
	locks lockv1.LockServiceClient
	id    string
}

func (c claim) Release(ctx context.Context) error {
	_, err := c.locks.Release(ctx, &lockv1.ReleaseRequest{ClaimId: c.id})
	return err
}

// enter goes from one round to the next to the other of two double barriers, whose name ends in their size. Who has left one waits, with
// Curator and kazoo, also for those who come there anew.
func (c *caller) enter(ctx context.Context) error {
	size, err := strconv.Atoi(c.name[strings.LastIndexByte(c.name, '-')+1:])
	if err != nil {
		return err
	}
	entry, err := c.client.EnterBarrier(ctx, fmt.Sprint(c.name, "-", c.rounds%2), size, sidekeeper.BarrierOptions{Lease: c.lease, Owner: "a peer"})
	c.held, c.rounds = leaver{entry}, c.rounds+1
	return err
}

// A leaver leaves with the others.
type leaver struct{ *sidekeeper.BarrierEntry }

func (l leaver) Release(ctx context.Context) error { return l.Leave(ctx) }

func (c *caller) release() error { return c.held.Release(context.Background()) }

func (c *caller) close() {
	if c.lease != nil {
		_ = c.lease.Close(context.Background())
	}
}

// direct is go-zookeeper's own lock.
type direct struct {
	servers     []string
	timeout     time.Duration
	credentials string
	shared      *zk.Conn
}

// openGoZooKeeper is told the servers, joined by commas, how long sessions last, and maybe what they prove themselves with.
func openGoZooKeeper(arguments []string) (_ library, err error) {
	d := &direct{servers: strings.Split(arguments[0], ","), credentials: strings.Join(arguments[2:], "")}
	if d.timeout, err = time.ParseDuration(arguments[1]); err != nil {
		return nil, err
	}
	d.shared, err = d.connect()
	return d, err
}

func (d *direct) connect() (*zk.Conn, error) {
	session, _, err := zk.Connect(d.servers, d.timeout, zk.WithLogger(silence{}))
	if credentials := d.credentials; err == nil && credentials != "" {
		err = session.AddAuth("digest", []byte(credentials))
	}
	return session, err
}

type silence struct{}

func (silence) Printf(string, ...any) {}

func (d *direct) contender(recipe, path string, alone bool) (contender, error) {
	if recipe != "lock" {
		return nil, errors.New("zk.Lock is a mutex")
	}
	session := d.shared
	if alone {
		var err error
		if session, err = d.connect(); err != nil {
			return nil, err
		}
	}
	lock := zk.NewLock(session, path, zk.WorldACL(zk.PermAll))
	return &directLock{Lock: lock, session: session, alone: alone}, nil
}

func (d *direct) close() { d.shared.Close() }

type directLock struct {
	*zk.Lock

	session *zk.Conn
	alone   bool
}

// acquire cannot be ended: zk.Lock waits until it holds.
func (l *directLock) acquire(context.Context) error { return l.Lock.Lock() }
func (l *directLock) release() error                { return l.Unlock() }

func (l *directLock) close() {
	if l.alone {
		l.session.Close()
	}
}
