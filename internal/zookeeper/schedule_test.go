package zookeeper

import (
	"container/heap"
	"math/rand/v2"
)

// A schedule is one random history of a session, a leader and the one or two servers the session is attached to, one after
// the other. Links are in order, stall for up to syncLimit ticks, deliver in a burst when a stall ends, and die for good
// at random; what is in flight then is lost. The leader expires the session T after the last report it got of it, without
// rounding. Times are seconds.
type schedule struct {
	random  *rand.Rand
	options scheduleOptions
	queue   eventQueue
	now     float64

	leaderTimer float64 // when the leader last started the session's timer
	servers     []*server
	attached    int // which server the session is attached to
	events      []observed
	asleep      [2]float64 // from when until when
}

type scheduleOptions struct {
	timeout, tick, interval float64
	syncLimit               int
	reads                   bool // heartbeats are answered by the server alone
	idleFirst               bool // the first heartbeat comes late
	moves                   bool // the session moves to a second server
	busy                    bool // the session makes other requests, too, whether or not something is under way
	sleeps                  bool // for some time heartbeats are answered by the server alone
	borrows                 bool // heartbeats are answered by the server alone, and another session of the sidecar's has a connection to it
}

// observed is what the session, or another one of the sidecar's, sees: a handshake, a heartbeat or another request answered, perhaps by the
// server alone.
type observed struct {
	handshake      bool
	read           bool
	prober         bool // it is the other one
	sent, answered float64
}

type server struct {
	toServer, toLeader *channel
	touched            bool
	heard              float64 // when the server last heard of the leader
	report             float64 // when the leader last heard of the server
	dropped            bool    // the leader has closed its connection to the server
	dead               bool
}

// A channel is one direction of a link.
type channel struct {
	stalls  [][2]float64
	latency float64
	last    float64
	dies    float64
}

func newChannel(random *rand.Rand, sync, horizon, dies float64) *channel {
	c := &channel{latency: []float64{0.001, 0.01, 0.1}[random.IntN(3)], dies: dies}
	if random.Float64() < 0.2 {
		return c
	}
	for t := 0.0; t < horizon; {
		t += random.ExpFloat64() * 8
		d := 0.05 + random.Float64()*(sync*0.98-0.05)
		c.stalls = append(c.stalls, [2]float64{t, t + d})
		t += d
	}
	return c
}

// arrive returns when what is sent now arrives, and whether it does.
func (c *channel) arrive(random *rand.Rand, now float64) (float64, bool) {
	at := now + c.latency*(0.5+random.Float64())
	for _, stall := range c.stalls {
		if stall[0] <= at && at < stall[1] {
			at = stall[1]
		}
	}
	c.last = max(c.last, at)
	return c.last, c.last < c.dies
}

type event struct {
	at     float64
	number int
	happen func()
}

type eventQueue []event

func (q *eventQueue) Len() int { return len(*q) }
func (q *eventQueue) Less(i, j int) bool {
	a, b := (*q)[i], (*q)[j]
	return a.at < b.at || a.at == b.at && a.number < b.number
}
func (q *eventQueue) Swap(i, j int) { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }
func (q *eventQueue) Push(x any)    { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

const horizon = 100.0

var pushed int

func (s *schedule) at(t float64, happen func()) {
	pushed++
	heap.Push(&s.queue, event{at: t, number: pushed, happen: happen})
}

// send carries something over a channel.
func (s *schedule) send(c *channel, happen func()) {
	if at, arrives := c.arrive(s.random, s.now); arrives {
		s.at(at, happen)
	}
}

// tell carries something from a server to the leader, which listens until it has closed the connection.
func (s *schedule) tell(f *server, happen func()) {
	s.send(f.toLeader, func() {
		if !f.dropped {
			happen()
		}
	})
}

// run plays the schedule and returns when the leader expired the session, and what the session had seen by then.
func (s *schedule) run() (expired float64, seen []observed) {
	s.start()
	for s.queue.Len() > 0 {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		if s.now > s.leaderTimer+s.options.timeout || s.now > horizon {
			break
		}
		e.happen()
	}
	expired = s.leaderTimer + s.options.timeout
	for _, o := range s.events {
		if o.answered <= expired {
			seen = append(seen, o)
		}
	}
	return expired, seen
}

func (s *schedule) start() {
	sync := float64(s.options.syncLimit) * s.options.tick
	for range 2 {
		die := 20 + s.random.Float64()*40
		dies := func() float64 {
			if s.random.Float64() < 0.5 {
				return die
			}
			return die + s.random.Float64()*10
		}
		server := &server{
			toServer: newChannel(s.random, sync, horizon, dies()),
			toLeader: newChannel(s.random, sync, horizon, dies()),
		}
		s.servers = append(s.servers, server)
		s.at(s.random.Float64()*s.options.tick/2, func() { s.ping(server) })
	}
	s.events = append(s.events, observed{handshake: true})
	first := s.options.interval
	if s.options.idleFirst {
		first = s.random.Float64() * s.options.timeout * 0.6
	}
	s.at(first, func() { s.heartbeat(0) })
	for t := s.options.timeout / 3; t < horizon; t += s.options.timeout / 3 {
		s.at(t, func() { s.servers[s.attached].touched = true })
	}
	if s.options.sleeps {
		from := s.random.Float64() * 40
		s.asleep = [2]float64{from, from + s.random.Float64()*40}
	}
	if s.options.busy {
		s.at(s.random.Float64()*40, s.bother)
	}
	if s.options.borrows {
		s.asleep = [2]float64{0, horizon}
		s.at(s.random.Float64()*20, func() { s.join(s.servers[0]) })
		s.at(15+s.random.Float64()*40, s.restart)
	}
	if s.options.moves {
		s.at(5+s.random.Float64()*40, s.move)
	}
}

// ping is the leader's, every tick/2 or a little later, for as long as it hears of the server.
func (s *schedule) ping(f *server) {
	sync := float64(s.options.syncLimit) * s.options.tick
	if s.now-f.report > sync {
		f.dropped = true
		return
	}
	s.send(f.toServer, func() {
		if f.dead {
			return
		}
		f.heard = s.now
		touched := f.touched
		f.touched = false
		s.tell(f, func() {
			f.report = s.now
			if touched {
				s.leaderTimer = max(s.leaderTimer, s.now)
			}
		})
	})
	s.at(s.now+s.options.tick/2+s.random.Float64()*pingLateness.Seconds(), func() { s.ping(f) })
}

// heartbeat is sent on the connection with that number, if it is still the present one.
func (s *schedule) heartbeat(connection int) {
	if s.attached != connection {
		return
	}
	sent := s.now
	s.ask(connection, s.options.reads || s.asleep[0] <= s.now && s.now < s.asleep[1], func() {
		next := max(s.now, sent+s.options.interval*(0.9+0.2*s.random.Float64()))
		s.at(next, func() { s.heartbeat(connection) })
	})
}

// bother makes requests besides the heartbeats, several at once and in bursts, until the session moves.
func (s *schedule) bother() {
	if s.attached != 0 {
		return
	}
	for range 1 + s.random.IntN(3) {
		s.ask(0, s.random.Float64() < 0.3, func() {})
	}
	s.at(s.now+s.random.ExpFloat64()*[]float64{0.003, 0.1, 2}[s.random.IntN(3)], s.bother)
}

// ask makes a request on the connection, which the server answers alone if it is a read.
func (s *schedule) ask(connection int, read bool, then func()) {
	f, sent := s.servers[connection], s.now
	delay := []float64{0.0005, 0.005}[s.random.IntN(2)]
	answer := func() {
		if s.attached != connection {
			return
		}
		s.events = append(s.events, observed{read: read && !s.options.reads, sent: sent, answered: s.now})
		then()
	}
	s.at(s.now+delay, func() {
		if f.dead {
			return
		}
		f.touched = true
		if read {
			if s.now-f.heard <= float64(s.options.syncLimit)*s.options.tick {
				s.at(s.now+delay, answer)
			}
			return
		}
		s.tell(f, func() { // the leader proposes and commits
			s.send(f.toServer, func() { s.at(s.now+delay, answer) })
		})
	})
}

// move re-attaches the session to the second server: the leader validates it and starts its timer.
func (s *schedule) move() {
	s.attached = 1
	f, sent := s.servers[1], s.now
	s.at(s.now+0.001, func() {
		s.tell(f, func() {
			s.leaderTimer = max(s.leaderTimer, s.now)
			s.send(f.toServer, func() {
				s.events = append(s.events, observed{handshake: true, sent: sent, answered: s.now})
				s.heartbeat(1)
			})
		})
	})
}

// restart has another process take the place of the first server's, with what that had not passed on. The other session comes back to it, or
// another one is opened there; the session itself does not notice.
func (s *schedule) restart() {
	s.servers[0].dead = true
	sync := float64(s.options.syncLimit) * s.options.tick
	started := &server{report: s.now, heard: s.now}
	for _, link := range []**channel{&started.toServer, &started.toLeader} {
		*link = newChannel(s.random, sync, horizon, 2*horizon)
	}
	s.ping(started)
	s.at(s.now+s.random.Float64(), func() { s.join(started) })
}

// join has the other session connect to a server, and prove itself there.
func (s *schedule) join(f *server) {
	s.askOther(f, observed{handshake: true, prober: true}, func() { s.beatOther(f) })
}

func (s *schedule) beatOther(f *server) {
	sent := s.now
	s.askOther(f, observed{prober: true}, func() {
		s.at(max(s.now, sent+s.options.interval*(0.4+0.2*s.random.Float64())), func() { s.beatOther(f) })
	})
}

// askOther has the other session ask for something that takes a quorum.
func (s *schedule) askOther(f *server, asked observed, then func()) {
	asked.sent = s.now
	delay := []float64{0.0005, 0.005}[s.random.IntN(2)]
	alive := func(do func()) func() {
		return func() {
			if !f.dead {
				do()
			}
		}
	}
	s.at(s.now+delay, alive(func() {
		s.tell(f, func() {
			s.send(f.toServer, alive(func() {
				s.at(s.now+delay, func() {
					asked.answered = s.now
					s.events = append(s.events, asked)
					then()
				})
			}))
		})
	}))
}
