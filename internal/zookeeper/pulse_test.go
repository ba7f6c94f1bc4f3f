package zookeeper

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Pulses are walked at random, in time that is made up, over connections that are lost and come back, and whose server answers soon, late or
// never. There is never more than one heartbeat under way; one that is late is told, and its connection given up; none is forgotten. While all
// are answered soon, the session is as valid as Validity says.
const (
	pulseWalks = 4000
	pulseSteps = 300
	soon       = 20 * time.Millisecond
)

func TestAPulseKeepsASessionProved(t *testing.T) {
	t.Parallel()
	config := Config{TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second}
	for seed := range uint64(pulseWalks) {
		w := newPulseWalk(&config, seed)
		for range pulseSteps {
			if w.step(); w.fault != "" {
				t.Fatalf("seed %d at %v: %s", seed, time.Duration(w.now), w.fault)
			}
		}
	}
}

// A pulseWalk is one life, its surroundings, and its server.
type pulseWalk struct {
	life

	random    *rand.Rand
	now       instant
	calm      bool // nothing is lost or late
	number    int  // of the connection
	connected bool
	comesBack instant // the next connection
	leads     bool    // and what else lookAround finds
	shares    bool
	sleepy    bool

	summoned bool
	passedOn instant // since when the heartbeat was asked for that has passed the proof of others on

	underWay bool
	answers  instant // when the server does
	sent     instant
	calmFrom instant // since when everything was answered soon
	fault    string
}

func newPulseWalk(config *Config, seed uint64) *pulseWalk {
	const timeout = 15 * time.Second
	w := &pulseWalk{
		random: rand.New(rand.NewPCG(seed, 2)), now: seconds(1000), number: 1, connected: true, calm: seed%2 == 0, sleepy: seed%3 == 0,
		comesBack: never, answers: never,
		life: life{
			negotiated: timeout, interval: config.interval(timeout), least: config.Validity(timeout).Least, proof: config.proof(timeout),
			barriers: barriers{placeBarriers: map[string]*placeBarrier{}}, sleepState: sleepState{unheard: config.unheard(timeout)},
		},
	}
	w.proof.opened(exchange{sent: w.now, answered: w.now})
	w.wanted, w.calmFrom = w.now, w.now
	w.startPulse(w.now, w.number, w.random.Float64)
	return w
}

// step goes on to what happens next, which is something by chance now and then.
func (w *pulseWalk) step() {
	chance := w.now.add(time.Duration(w.random.Int64N(int64(4 * time.Second))))
	w.now = max(w.now, min(w.nextTick(), w.answers, w.comesBack, chance))
	switch {
	case w.now >= w.comesBack:
		w.comesBack, w.connected = never, true
		w.number++
		w.proof.reattached(exchange{sent: w.now, answered: w.now})
		w.plain = 0
	case w.now >= w.answers:
		w.answer()
		return
	case w.now < w.nextTick():
		w.happen()
	}
	w.pulsed(func(instant) effects { return 0 })
}

// happen has something happen.
func (w *pulseWalk) happen() {
	switch w.random.IntN(8) {
	case 0:
		w.leads, w.shares = w.random.IntN(2) == 0, w.random.IntN(2) == 0
	case 1:
		w.summoned = w.want(w.now)&summons != 0
	case 3:
		if w.shares && !w.calm && w.now.since(w.proof.newest.answered) >= w.interval {
			w.doubted, w.summoned = true, true
		}
	case 2:
		if !w.calm {
			w.lose()
		}
	}
}

// lose loses the connection, and with it what is under way.
func (w *pulseWalk) lose() {
	if !w.connected {
		return
	}
	w.connected, w.leads, w.shares, w.calmFrom = false, false, false, never
	w.comesBack = w.now.add(time.Duration(w.random.Int64N(int64(6 * time.Second))))
	if w.underWay {
		w.underWay, w.answers = false, never
		w.pulsed(w.unanswered)
	}
}

// answer has the server answer the heartbeat, as the session takes it.
func (w *pulseWalk) answer() {
	w.underWay, w.answers = false, never
	if beat := (exchange{sent: w.sent, answered: w.now}); w.round.kind == reads {
		w.proof.answeredRequest(beat)
		w.plain = w.sent
	} else {
		w.proved(beat)
		w.endSleep(w.now)
		w.plain = 0
	}
	more := w.round.kind == proves && w.random.IntN(4) == 0
	w.pulsed(func(now instant) effects { return w.heard(now, more, w.around()) })
}

func (w *pulseWalk) around() surroundings {
	reached := func() instant { return max(w.proof.attached.sent, w.proof.newest.sent).add(w.unheard) }
	return surroundings{
		maySleep: w.sleepy && !w.suspended && !w.doubted, leads: w.leads && w.shares && !w.asleep, accompanied: w.shares && !w.asleep,
		proved: w.shares && !w.leads && !w.asleep, reachedUntil: reached, findsOut: func() bool { return w.now >= reached() },
	}
}

// pulsed is that of a session.
func (w *pulseWalk) pulsed(event func(now instant) effects) {
	before, led := w.failures, w.round.leads
	what := event(w.now)
	if before == 0 && w.failures == 1 && led && what&passes == 0 {
		w.fault = "a prober has failed, and goes on as one"
	}
	if w.isDue(w.now, w.number) || w.summoned && w.stage == resting {
		w.summoned = false
		if in := w.around(); w.sleeps(w.now, in) {
			w.asleep = true
		}
		w.look(w.now, w.number, w.around())
	}
	what |= w.tick(w.now, w.number, w.connected)
	if what&passes != 0 {
		w.passedOn = w.asked
	}
	if what&asks != 0 {
		w.send()
	}
	w.judge(what)
	if what&drops != 0 {
		w.lose()
	}
}

// send has the server answer after a while, or never.
func (w *pulseWalk) send() {
	if w.underWay || !w.connected {
		w.fault = "a heartbeat is sent beside another one, or without a connection"
	}
	takes := time.Duration(w.random.Int64N(int64(soon)))
	if !w.calm && w.random.IntN(4) == 0 {
		takes, w.calmFrom = time.Duration(w.random.Int64N(int64(8*time.Second))), never
	}
	if w.calmFrom == never && w.calm {
		w.calmFrom = w.now
	}
	w.underWay, w.sent, w.answers = true, w.now, w.now.add(takes)
}

// judge looks whether anything was forgotten, is told too late, or is less than is promised.
func (w *pulseWalk) judge(what effects) {
	waited := w.now.since(w.asked)
	switch calm := w.now.since(w.calmFrom); {
	case w.nextTick() <= w.now:
		w.fault = fmt.Sprintf("it looks again at %v", time.Duration(w.nextTick()))
	case w.stage != waiting && w.nextTick().since(w.now) > 2*w.interval:
		w.fault = fmt.Sprintf("it does not look before %v", time.Duration(w.nextTick()))
	case w.stage == asking && !w.underWay:
		w.fault = "it waits for the answer to nothing"
	case w.stage != resting && waited >= w.interval && !w.suspended:
		w.fault = "a heartbeat is late, and the session has told no caller"
	case w.stage != resting && w.round.leads && waited >= w.interval/2 && w.passedOn != w.asked:
		w.fault = "a prober is half late, and goes on as one"
	case w.connected && w.on != w.number:
		w.fault = "a new connection is not used at once"
	case w.stage == resting && w.failures > 0 && w.looks.since(w.now) > leastRest+w.interval/2:
		w.fault = fmt.Sprintf("what has failed is not tried again before %v", time.Duration(w.looks))
	case w.underWay && w.now.since(max(w.sent, w.proof.attached.answered)) >= w.interval*3/2 && what&drops == 0:
		w.fault = "a connection that does not answer is kept"
	case w.calmFrom != never && calm >= 0 && !w.asleep && w.now.since(w.wanted) > 2*w.interval && w.validFor(w.now) < w.least-4*soon:
		w.fault = fmt.Sprintf("it is valid for %v, of %v at least", w.validFor(w.now), w.least)
	}
}
