package recipes

import (
	"context"
	"math/rand/v2"
	"time"
)

// A backoff is when one sidecar may next try to change what several change. One that has just changed it knows what is there now
// and would win against the others, who must read first, again and again; so while others were seen lately it stands back
// for a few times what a change takes. One that was overtaken tries again, sooner the more often that happened.
type backoff struct {
	took      time.Duration // by a change, smoothed
	overtaken int           // in a row
	others    time.Time     // until when they are reckoned with
	next      time.Time     // when the next attempt may begin
}

// contentionLasts is for how long others are reckoned with after they were last seen.
const contentionLasts = time.Second

// await returns when it is time for the next attempt.
func (p *backoff) await(ctx context.Context) error { return pause(ctx, time.Until(p.next)) }

// won notes a change that took so long.
func (p *backoff) won(took time.Duration) {
	now := p.note(took)
	p.overtaken = 0
	if now.Before(p.others) {
		p.next = now.Add(p.took/2 + jittered(p.took/2))
	}
}

// lost notes that another sidecar was faster.
func (p *backoff) lost(took time.Duration) {
	now := p.note(took)
	p.overtaken++
	p.others = now.Add(contentionLasts)
	p.next = now.Add(jittered(p.took / time.Duration(1+p.overtaken)))
}

// note smooths how long changes take. One that met an ensemble away took long, which says nothing of the next.
func (p *backoff) note(took time.Duration) time.Time {
	if p.took == 0 {
		p.took = min(took, contentionLasts/10)
	}
	p.took += (min(took, 2*p.took) - p.took) / 8
	return time.Now()
}

// jittered is d, give or take a half of it.
func jittered(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Float64()*float64(d)) //nolint:gosec // spreads time, and needs no secrecy
}

// pause returns after d, or with ctx's cause when that ends.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
