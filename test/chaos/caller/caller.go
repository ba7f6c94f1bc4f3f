// Package caller is the client processes of the fault test: programs that use what a sidecar offers, as applications do,
// and note what they ask for and what they are told.
//
// Each process has a number of callers, goroutines that go about one workload each until they are asked to stop.
package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/store"
)

// Argument is what a program is called with that is to be a client process; see [Run].
const Argument = "caller"

// Which locks callers use.
const (
	Sidekeeper = "sidekeeper"
	ZKLock     = "zklock" // go-zookeeper's own, without a sidecar
)

// An Order is what a client process is told.
type Order struct {
	Client    int           `json:"client"` // its number, never given to two in a round
	Slot      int           `json:"slot"`   // which of Slots it fills; another client fills the slot of one that was killed
	Slots     int           `json:"slots"`
	Rank      int           `json:"rank"`      // which of its host's clients it is
	Sidecar   int           `json:"sidecar"`   // the number of the sidecar it talks to
	Address   string        `json:"address"`   // and where
	Lending   string        `json:"lending"`   // and where those who open leases that others hold with
	Borrowing string        `json:"borrowing"` // and the others
	Resumes   bool          `json:"resumes"`   // whether what the library has outlives the sidecar's process
	Operators string        `json:"operators"` // where the sidecar listens for operators
	Locks     string        `json:"locks"`     // Sidekeeper or ZKLock
	Servers   []string      `json:"servers"`   // of the ensemble, for ZKLock
	Stores    string        `json:"stores"`    // Unix socket
	Histories string        `json:"histories"` // directory
	Prefix    string        `json:"prefix"`    // of all names
	Timeout   time.Duration `json:"timeout"`   // of sessions
	Ahead     time.Duration `json:"ahead"`     // by which the clock of histories is ahead of CLOCK_MONOTONIC
	Seed      uint64        `json:"seed"`
	Workloads []string      `json:"workloads"` // names of Workloads
}

// A process is a client process.
type process struct {
	order   Order
	history *history.Writer
	stores  *store.Client
	library *sidekeeper.Client
	locks   locker
	newest  atomic.Int64 // operation
	lease   sharedLease
}

// A caller is one goroutine of a client process.
type caller struct {
	*process

	number int // in the process
	index  int // among those of its workload
	dice   *rand.Rand
}

// Run is the client process: it takes an Order as JSON from its input and carries it out until the input ends.
func Run(input io.Reader) error {
	p := &process{}
	orders := json.NewDecoder(input)
	if err := orders.Decode(&p.order); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	if err := p.open(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() {
		defer stop()
		io.Copy(io.Discard, io.MultiReader(orders.Buffered(), input)) //nolint:errcheck // an input that breaks has ended
	})
	p.run(ctx)
	over.Wait()
	return p.close()
}

func (p *process) open() (err error) {
	if p.history, err = history.Create(p.order.Histories, p.order.Client); err != nil {
		return err
	}
	p.stores = store.Dial(p.order.Stores, p.order.Client)
	if p.library, err = sidekeeper.Dial(p.order.Address, sidekeeper.WithoutRepetition()); err != nil {
		return err
	}
	p.locks = libraryLocks{p}
	if p.order.Locks == ZKLock {
		p.locks = zookeeperLocks{p}
	}
	return nil
}

// run has all callers go about their workloads and returns when they have stopped.
func (p *process) run(ctx context.Context) {
	var callers sync.WaitGroup
	number := 0
	for _, name := range p.order.Workloads {
		w, known := Workloads[name]
		for index := range p.callersOf(w) {
			if !known {
				continue
			}
			number++
			c := &caller{process: p, number: number, index: index, dice: rand.New(rand.NewPCG(p.order.Seed, uint64(number)))}
			callers.Go(func() { w.run(ctx, c) })
		}
	}
	callers.Wait()
}

// callersOf is how many callers of this process go about a workload.
func (p *process) callersOf(w Workload) int {
	if p.order.Slot >= w.slots && w.slots != 0 {
		return 0
	}
	return w.callers
}

func (p *process) close() error {
	p.lease.close()
	p.library.Close()
	p.stores.Close()
	return p.history.Close()
}

// begin begins an operation.
func (c *caller) begin(event history.Event) (op int64) {
	op = c.newest.Add(1)
	event.Sidecar = c.order.Sidecar
	c.note(op, event)
	return op
}

func (c *caller) note(op int64, event history.Event) {
	event.Op, event.Caller = op, c.number
	c.history.Append(event)
}

// name is a name of this round.
func (c *caller) name(format string, arguments ...any) string {
	return c.order.Prefix + "/" + fmt.Sprintf(format, arguments...)
}

// twin is the same caller, to do something at the same time.
func (c *caller) twin() *caller {
	twin := *c
	twin.dice = rand.New(rand.NewPCG(c.dice.Uint64(), c.dice.Uint64()))
	return &twin
}

// between draws a time.
func (c *caller) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.dice.Int64N(int64(most-least)+1))
}

// pause waits for a while, and says whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
