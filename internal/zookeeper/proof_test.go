package zookeeper

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var schedules = flag.Int("schedules", mostSchedules/oneIn, "how many random schedules to try the formula on, for each setting")

// mostSchedules is how many may be needed to catch a formula that is wrong.
const mostSchedules = 1500

func seconds(s float64) instant { return instant(s * float64(time.Second)) }

// outlived returns by how much a proof says a session lives longer than the leader lets it, having seen the events.
func outlived(p proof, expired float64, seen []observed, decide func(*proof, exchange)) time.Duration {
	var prober proof // of which only the pair of heartbeats and the handshake count
	for i, o := range seen {
		e := exchange{sent: seconds(o.sent), answered: seconds(o.answered)}
		switch {
		case i == 0:
			p.opened(e)
		case o.prober && o.handshake:
			prober.reattached(e)
		case o.prober:
			prober.answeredHeartbeat(e)
			decide(&p, exchange{sent: prober.before.sent, answered: prober.attached.answered})
		case o.handshake:
			p.reattached(e)
		case o.read:
			p.answeredRequest(e)
		default:
			decide(&p, e)
		}
	}
	exact := time.Duration(float64(p.timeout) * 2 * clockRateError) // the model's clocks are right
	return p.deadline.add(exact + p.margin).since(seconds(expired))
}

var settings = []scheduleOptions{
	{timeout: 15, tick: 2, interval: 2, syncLimit: 5},
	{timeout: 15, tick: 2, interval: 0.5, syncLimit: 5},
	{timeout: 6, tick: 2, interval: 0.8, syncLimit: 5},
	{timeout: 4, tick: 2, interval: 0.3, syncLimit: 5},
	{timeout: 2, tick: 0.2, interval: 0.25, syncLimit: 5},
	{timeout: 30, tick: 2, interval: 2, syncLimit: 5},
}

func vary(options scheduleOptions, seed uint64) scheduleOptions {
	options.idleFirst = seed%2 == 1
	options.moves = seed%3 == 1
	options.busy = seed%4 < 2
	options.sleeps = seed%5 == 1
	return options
}

func (o scheduleOptions) proof(static bool) proof {
	config := Config{TickTime: time.Duration(o.tick * float64(time.Second)), SyncLimit: o.syncLimit}
	if static {
		config.Proof = ProofStatic
	}
	return config.proof(time.Duration(o.timeout * float64(time.Second)))
}

func TestTheFormulaNeverOutlivesTheSession(t *testing.T) {
	for _, options := range settings {
		t.Run(fmt.Sprintf("T=%v tick=%v h=%v", options.timeout, options.tick, options.interval), func(t *testing.T) {
			worst := -time.Hour
			for seed := range uint64(*schedules) {
				s := schedule{random: rand.New(rand.NewPCG(seed, 1)), options: vary(options, seed)}
				expired, seen := s.run()
				by := outlived(s.options.proof(false), expired, seen, (*proof).answeredHeartbeat)
				if by > 0 {
					t.Errorf("seed %d: outlived the session by %v", seed, by)
				}
				worst = max(worst, by)
			}
			t.Logf("closest to the session's end: %v", -worst)
		})
	}
}

// borrow is what a session makes of what the prober's heartbeats show: when the newest but one was sent, and the handshake was answered.
func borrow(p *proof, shown exchange) {
	if shown.sent != 0 {
		p.borrow(shown.sent, shown.answered)
	}
}

// Another session's heartbeats prove this one while servers restart behind their addresses.
func TestABorrowedProofNeverOutlivesTheSession(t *testing.T) {
	for _, options := range settings {
		t.Run(fmt.Sprintf("T=%v tick=%v h=%v", options.timeout, options.tick, options.interval), func(t *testing.T) {
			worst, proved := -time.Hour, 0
			for seed := range uint64(*schedules) {
				expired, seen, p := borrowing(options, seed)
				by := outlived(p, expired, seen, borrow)
				if by > 0 {
					t.Errorf("seed %d: outlived the session by %v", seed, by)
				}
				worst = max(worst, by)
				if expired > 2*options.timeout && by > -p.timeout {
					proved++
				}
			}
			t.Logf("closest to the session's end: %v; %d are still proved when they expire, long after they were opened", -worst, proved)
			if proved < *schedules/20 {
				t.Error("too few are proved")
			}
		})
	}
}

func borrowing(options scheduleOptions, seed uint64) (expired float64, seen []observed, p proof) {
	options.borrows, options.idleFirst = true, seed%2 == 1
	s := schedule{random: rand.New(rand.NewPCG(seed, 3)), options: options}
	expired, seen = s.run()
	return expired, seen, s.options.proof(false)
}

func TestTheSchedulesCatchWrongWaysToBorrow(t *testing.T) {
	for name, decide := range map[string]func(*proof, exchange){
		"from a prober that came later": func(p *proof, shown exchange) { borrow(p, exchange{sent: shown.sent, answered: -1}) },
		"answered before the newest but one was sent": func(p *proof, shown exchange) {
			borrow(p, exchange{sent: shown.sent.add(p.slack), answered: shown.answered})
		},
		"the newest that was answered": func(p *proof, shown exchange) {
			if n := len(p.exchanges); n > 0 && shown.sent > 0 {
				p.extend(p.exchanges[n-1].sent)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(mostSchedules) {
				if expired, seen, p := borrowing(settings[0], seed); outlived(p, expired, seen, decide) > 0 {
					t.Logf("outlives the session in schedule %d", seed)
					return
				}
			}
			t.Error("not one schedule shows that it outlives the session")
		})
	}
}

func TestTheStaticFormulaNeverOutlivesTheSession(t *testing.T) {
	for _, options := range []scheduleOptions{
		{timeout: 40, tick: 2, interval: 1, syncLimit: 5, reads: true},
		{timeout: 8, tick: 0.2, interval: 0.5, syncLimit: 5, reads: true},
	} {
		for seed := range uint64(*schedules) {
			s := schedule{random: rand.New(rand.NewPCG(seed, 2)), options: vary(options, seed)}
			expired, seen := s.run()
			if by := outlived(s.options.proof(true), expired, seen, (*proof).answeredHeartbeat); by > 0 {
				t.Errorf("T=%v seed %d: outlived the session by %v", options.timeout, seed, by)
			}
		}
	}
}

// The leader pings the server at 10 and, late, at 11.1. The server dies before it can answer the second ping, so that the leader
// has heard of nothing after 10; but it has committed a heartbeat that was sent at 11.05, and one after that.
func TestAHeartbeatBehindTheLastPingOfALateLeaderDoesNotCount(t *testing.T) {
	options := scheduleOptions{timeout: 15, tick: 2, syncLimit: 5}
	seen := []observed{{handshake: true, sent: 0, answered: 0.001}}
	for _, sent := range []float64{2, 4, 6, 8, 9.9, 10.03, 11.05, 13} {
		seen = append(seen, observed{sent: sent, answered: sent + 0.005})
		if by := outlived(options.proof(false), 10+options.timeout, seen, (*proof).answeredHeartbeat); by > 0 {
			t.Errorf("after the heartbeat of %v: outlived the session by %v", sent, by)
		}
	}
}

// The schedules must be able to show a wrong formula: these are wrong, and look right.
func TestTheSchedulesCatchWrongFormulas(t *testing.T) {
	wrong := map[string]func(*proof, exchange){
		"newest answered": func(p *proof, e exchange) { p.extend(e.sent) },
		"newest answered, half a tick and an interval earlier": func(p *proof, e exchange) {
			p.extend(e.sent.add(-p.slack - 2*time.Second))
		},
		"answered half a tick before the newest was sent": func(p *proof, e exchange) {
			p.exchanges = append(p.exchanges, e)
			if since, ok := p.answeredBefore(e.sent.add(-p.slack)); ok {
				p.extend(since)
			}
		},
		"answered before the second newest was sent": func(p *proof, e exchange) {
			p.exchanges = append(p.exchanges, e)
			if n := len(p.exchanges); n > 1 {
				p.extend(p.exchanges[n-2].sent)
			}
		},
		"reads count as transactions": (*proof).answeredHeartbeat,
		"transactions that were under way together": func(p *proof, e exchange) {
			p.newest.answered = min(p.newest.answered, e.sent)
			p.answeredHeartbeat(e)
		},
		"one list for all connections": func(p *proof, e exchange) {
			p.exchanges = append(p.exchanges, e)
			p.extend(p.exchanges[max(0, len(p.exchanges)-2)].sent)
		},
	}
	for name, decide := range wrong {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(mostSchedules) {
				s := schedule{random: rand.New(rand.NewPCG(seed, 1)), options: vary(settings[0], seed)}
				expired, seen := s.run()
				if name == "reads count as transactions" {
					for i := range seen {
						seen[i].read = false
					}
				}
				if outlived(s.options.proof(false), expired, seen, decide) > 0 {
					t.Logf("outlives the session in schedule %d", seed)
					return
				}
			}
			t.Error("not one schedule shows that it outlives the session")
		})
	}
}

func TestASettingThatCannotBeSafeIsRefused(t *testing.T) {
	config := Config{TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second}
	static := Config{TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: time.Second, Proof: ProofStatic}
	cases := []struct {
		name    string
		config  Config
		timeout time.Duration
		safe    bool
	}{
		{"defaults", config, 15 * time.Second, true},
		{"short timeout, heartbeats adapt", config, 4 * time.Second, true},
		{"shorter than a tick", config, time.Second, false},
		{"static on defaults", static, 30 * time.Second, false},
		{"static at the longest timeout", static, 40 * time.Second, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.config.safe(c.timeout); (err == nil) != c.safe {
				t.Errorf("safe: got %v, want safe %v", err, c.safe)
			}
		})
	}
}
