package simulation

import (
	"math/rand/v2"
	"time"
)

// A pipe is one direction of a link. What is sent arrives in order.
type pipe struct {
	ensemble *Ensemble
	dice     *rand.Rand
	last     time.Duration // when the newest message arrives
	slow     time.Duration // what a message takes longer than it should
	cut      bool
	held     []func() // what is waiting for the pipe to be mended
}

// send has something happen at the other end.
func (p *pipe) send(arrive func()) {
	delay := p.ensemble.options.Latency/10 + p.slow
	delay += time.Duration(p.dice.Int64N(int64(p.ensemble.options.Latency)))
	p.last = max(p.last+1, p.ensemble.now()+delay)
	p.ensemble.at(p.last, func() { p.arrive(arrive) })
}

func (p *pipe) arrive(arrive func()) {
	if p.cut {
		p.held = append(p.held, arrive)
		return
	}
	arrive()
}

// mend has everything that was held arrive in a burst, before whatever is sent from now on.
func (p *pipe) mend() {
	p.cut = false
	held := p.held
	p.held = nil
	now := p.ensemble.now()
	for _, arrive := range held {
		p.ensemble.at(now, func() { p.arrive(arrive) })
	}
}
