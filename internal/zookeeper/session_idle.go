package zookeeper

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A sessionPool keeps idle sessions, the one that was used last at the end.
type sessionPool struct {
	mu     sync.Mutex
	idle   []idleSession
	opened [2]int    // how many were asked for in this window, and in the one before
	since  time.Time // when this window began
	closed bool
}

type idleSession struct {
	*Session

	key    poolKey
	expiry *time.Timer
}

// count counts a session that is asked for.
func (p *sessionPool) count() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn()
	p.opened[0]++
}

// turn begins a new window when it is time. The lock is held.
func (p *sessionPool) turn() {
	switch age := time.Since(p.since); {
	case age >= 2*poolWindow:
		p.opened = [2]int{}
	case age >= poolWindow:
		p.opened = [2]int{0, p.opened[0]}
	default:
		return
	}
	p.since = time.Now()
}

// hasRoom says whether one more session may be idle: as many may as were asked for of late.
func (p *sessionPool) hasRoom() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasRoomLocked()
}

func (p *sessionPool) hasRoomLocked() bool {
	p.turn()
	return !p.closed && len(p.idle) < p.opened[0]+p.opened[1]
}

// put keeps a clean session that is given back, and says whether it did.
func (p *sessionPool) put(back *PooledSession) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := back.Session
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.hasRoomLocked() || !s.isClean() {
		return false
	}
	s.atEnd, s.wanted = nil, s.now()
	back.done()
	expiry := time.AfterFunc(idleTimeout, func() { p.expire(s) })
	p.idle = append(p.idle, idleSession{s, back.key, expiry})
	return true
}

// take takes an idle session that is as good as a new one; nil if there is none.
func (p *sessionPool) take(key poolKey) *Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, idle := range slices.Backward(p.idle) {
		if idle.key == key && idle.isFit() {
			idle.expiry.Stop()
			p.idle = slices.Delete(p.idle, i, i+1)
			return idle.Session
		}
	}
	return nil
}

func (i idleSession) isFit() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.isClean()
}

// expire closes a session that has been idle for long enough, unless it was taken.
func (p *sessionPool) expire(s *Session) {
	p.mu.Lock()
	i := slices.IndexFunc(p.idle, func(idle idleSession) bool { return idle.Session == s })
	if i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		s.Close(context.Background())
	}
}

// clear closes all idle sessions, and says how many.
func (p *sessionPool) clear() int {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var closing sync.WaitGroup
	for _, each := range idle {
		each.expiry.Stop()
		closing.Go(func() { each.Close(context.Background()) })
	}
	closing.Wait()
	return len(idle)
}

// close closes all idle sessions, and keeps none any more.
func (p *sessionPool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.clear()
}
