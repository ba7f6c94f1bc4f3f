package service

import (
	"maps"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// A driver brings a lease's machine what happens, one event at a time, and does what follows. Nothing of that waits for anything.
type driver struct {
	began   time.Time
	session int64 // whose number the steps bear

	mu        sync.Mutex
	lease     machine.Machine
	effects   []machine.Effect // of the newest step
	newest    machine.ID
	known     map[machine.Connection]*caller.Ending // of those who were told, and of callers
	mostKnown int                                   // before those are forgotten over which no caller counts
	watching  map[machine.Connection]func() bool    // stop it
	awaited   map[machine.ID]func()                 // called when the place may go
	left      []func()                              // to be called after the newest step
	timer     *time.Timer
}

func (d *driver) now() machine.Instant { return machine.Instant(time.Since(d.began)) }

// begin has a request stand on the lease, whose caller is told of it over a connection. Unless it has left, it must be forgotten.
func (d *driver) begin(from caller.Caller, carried bool) machine.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest++
	d.knowLocked(from)
	d.stepLocked(machine.Event{Kind: machine.Began, Of: d.newest, On: connection(from), Carried: carried})
	return d.newest
}

// tell notes that a caller is about to be told a validity of something that stands on the lease, or of the lease for 0. It returns false, and
// the caller must not be told, if that has ended.
func (d *driver) tell(of machine.ID, to caller.Caller, validity time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if validity > 0 {
		d.knowLocked(to)
	}
	return d.stepLocked(machine.Event{Kind: machine.Told, Of: of, On: connection(to), For: validity})
}

// step brings an event. What follows when a place may go is done before it returns, with nothing locked here: its caller must hold no lock.
func (d *driver) step(e machine.Event) {
	d.mu.Lock()
	d.stepLocked(e)
	left := d.left
	d.left = nil
	d.mu.Unlock()
	for _, then := range left {
		then()
	}
}

// close notes that the caller has closed the lease over a connection. That lets no place go.
func (d *driver) close(by caller.Caller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stepLocked(machine.Event{Kind: machine.Closed, On: connection(by)})
}

// afterLeft has then called when the place of a request that has ended may go, because no caller counts on it.
func (d *driver) afterLeft(of machine.ID, then func()) {
	d.mu.Lock()
	left := d.lease.Left(of)
	if !left {
		if d.awaited == nil {
			d.awaited = map[machine.ID]func(){}
		}
		d.awaited[of] = then
	}
	d.mu.Unlock()
	if left {
		then()
	}
}

// finish is called when nothing stands on the lease any more.
func (d *driver) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, stop := range d.watching {
		stop()
	}
	if d.timer != nil {
		d.timer.Stop()
	}
}

// stepLocked says whether what was asked for may be done.
func (d *driver) stepLocked(e machine.Event) (may bool) {
	before := d.lease.Deadline()
	d.effects = d.lease.Step(d.now(), e, d.effects[:0])
	may = true
	for _, effect := range d.effects {
		switch effect.Do {
		case machine.Refuse:
			may = false
		case machine.Leave:
			if then := d.awaited[effect.Of]; then != nil {
				d.left = append(d.left, then)
				delete(d.awaited, effect.Of)
			}
		case machine.Watch:
			d.watchLocked(effect.On)
		case machine.Unwatch:
			if stop := d.watching[effect.On]; stop != nil {
				stop()
				delete(d.watching, effect.On)
			}
		case machine.Record:
			trace.Tell(trace.Step{Kind: effect.Step, Session: d.session, Token: effect.Token, Until: effect.For})
		}
	}
	if due := d.lease.Deadline(); due != before && due != 0 {
		d.wakeLocked(time.Duration(due - d.now()))
	}
	return may
}

// oftenest is how often the machine is told that a time is over, at most. A later tick keeps places longer, and harms no caller.
const oftenest = 20 * time.Millisecond

func (d *driver) wakeLocked(in time.Duration) {
	in = max(in, oftenest)
	if d.timer == nil {
		d.timer = time.AfterFunc(in, func() { d.step(machine.Event{Kind: machine.Ticked}) })
		return
	}
	d.timer.Reset(in)
}

// fewKnown is how many connections are remembered at least.
const fewKnown = 8

// knowLocked remembers a connection whose departure may be asked for. A caller that asks over short connections uses many.
func (d *driver) knowLocked(from caller.Caller) {
	on := connection(from)
	if on == 0 || d.known[on] != nil {
		return
	}
	if len(d.known) >= max(d.mostKnown, fewKnown) {
		still := d.lease.Knows(d.now())
		maps.DeleteFunc(d.known, func(on machine.Connection, _ *caller.Ending) bool { return !still[on] })
		d.mostKnown = 2 * len(d.known)
	}
	if d.known == nil {
		d.known = map[machine.Connection]*caller.Ending{}
	}
	d.known[on] = from.Ending
}

func (d *driver) watchLocked(on machine.Connection) {
	if from := d.known[on]; from != nil {
		if d.watching == nil {
			d.watching = map[machine.Connection]func() bool{}
		}
		d.watching[on] = from.AfterLeft(func() { d.step(machine.Event{Kind: machine.Departed, On: on}) })
	}
}

func connection(of caller.Caller) machine.Connection { return machine.Connection(of.Ending.Number()) }
