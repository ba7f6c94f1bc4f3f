package simulation

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
)

// size is the number of servers; two of them are a quorum.
const size = 3

// Options are the settings of an ensemble. The zero value is good.
type Options struct {
	Seed      uint64
	Tick      time.Duration // 2 s if zero
	SyncLimit int           // 5 if zero
	Hosts     int           // from which clients connect; 1 if zero
	Latency   time.Duration // longest of a link without faults; 2 ms if zero

	// Ended is told of each session whose end has been committed, in the instant in which it was, or nil. It must not call
	// the ensemble.
	Ended func(session int64)
	// Committed is told of each change as it is committed, in the same way, or nil.
	Committed func(Change)
}

// An Ensemble is three servers and the links between them and their clients.
type Ensemble struct {
	options Options
	began   time.Time

	mu       sync.Mutex
	events   eventQueue
	numbered int
	sooner   chan struct{}
	stop     chan struct{}
	stopped  chan struct{}

	servers [size]*server
	between [size][size]*pipe // from one server to another
	up      [][size]*pipe     // from a host to a server
	down    [][size]*pipe     // from a server to a host
	epoch   int               // of the newest term
	begun   int               // of the newest that a quorum has followed

	truth    *embedded.Replica // what has been committed
	order    []*entry          // all that has been committed
	sessions int64             // opened
	ended    map[int64]time.Duration
	standing map[string]int64 // ephemeral nodes that were there when Committed was told last, and their owners
	diverged string           // why the servers do not agree, which would be a mistake of this package
}

// New starts an ensemble. It has a leader about a tick later. Close it.
func New(options Options) *Ensemble {
	if options.Tick == 0 {
		options.Tick = 2 * time.Second
	}
	if options.SyncLimit == 0 {
		options.SyncLimit = 5
	}
	if options.Latency == 0 {
		options.Latency = 2 * time.Millisecond
	}
	e := &Ensemble{
		options: options, began: time.Now(),
		sooner: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
		truth: newReplica(), ended: map[int64]time.Duration{},
	}
	e.connect(max(1, options.Hosts))
	e.mu.Lock()
	for i := range e.servers {
		e.servers[i] = newServer(e, i)
		e.servers[i].start()
	}
	e.mu.Unlock()
	go e.run()
	return e
}

// newReplica is the state of a server to which no transaction has been applied: it lists the servers, as a real one does.
func newReplica() *embedded.Replica {
	var list []byte
	for i, address := range addresses() {
		list = fmt.Appendf(list, "server.%d=192.0.2.%d:2888:3888:participant;%s\n", i+1, i+1, address)
	}
	made := embedded.NewReplica()
	made.List(append(list, "version=1"...))
	return made
}

// connect lays the links.
func (e *Ensemble) connect(hosts int) {
	number := uint64(0)
	lay := func() *pipe {
		number++
		return &pipe{ensemble: e, dice: rand.New(rand.NewPCG(e.options.Seed, number))}
	}
	for i := range size {
		for j := range size {
			e.between[i][j] = lay()
		}
	}
	e.up, e.down = make([][size]*pipe, hosts), make([][size]*pipe, hosts)
	for h := range hosts {
		for i := range size {
			e.up[h][i], e.down[h][i] = lay(), lay()
		}
	}
}

// Close ends the ensemble: its clients' connections are reset.
func (e *Ensemble) Close() {
	close(e.stop)
	<-e.stopped
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.servers {
		for _, c := range s.clients {
			c.conn.end()
		}
	}
	e.events = nil
}

// Addresses are the servers', as clients name them. They are of the range for examples, and never resolved.
func (e *Ensemble) Addresses() []string { return addresses() }

func addresses() []string {
	of := make([]string, size)
	for i := range of {
		of[i] = fmt.Sprintf("192.0.2.%d:2181", i+1)
	}
	return of
}

// syncTime is for how long a server waits for another one to be heard of.
func (e *Ensemble) syncTime() time.Duration {
	return time.Duration(e.options.SyncLimit) * e.options.Tick
}

// commit notes that an entry of the log has been committed: it is the next one in the one order that all servers have.
func (e *Ensemble) commit(position int, committed *entry) {
	if position < len(e.order) {
		if e.order[position] != committed {
			e.diverged = fmt.Sprintf("transaction %d was committed twice", position)
		}
		return
	}
	if position > len(e.order) {
		e.diverged = fmt.Sprintf("transaction %d was committed before %d", position, len(e.order))
	}
	e.order = append(e.order, committed)
	alive := e.truth.Alive(committed.session)
	committed.apply(e.truth)
	e.tellChange(alive, committed)
	if !alive || e.truth.Alive(committed.session) {
		return
	}
	e.ended[committed.session] = e.now()
	if e.options.Ended != nil {
		e.options.Ended(committed.session)
	}
}
