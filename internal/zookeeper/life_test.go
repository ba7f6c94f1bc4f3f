package zookeeper

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// Lives are walked at random, in time that is made up. A walk is one session on one connection, whose server answers in the order in which it
// was asked, late or soon. Operators ask for places, and take one by force a lifetime after that. Callers ask for how long they may count on the
// session. What a caller was told ends before that, and before the session is over.
const (
	walks     = 12000
	stepsEach = 800
)

func TestALifeKeepsWhatCallersWereTold(t *testing.T) {
	t.Parallel()
	config := Config{TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second}
	for seed := range uint64(walks) {
		w := newWalk(&config, seed)
		for range stepsEach {
			if w.step(); w.fault != "" {
				t.Fatalf("seed %d at %v: %s", seed, time.Duration(w.now), w.fault)
			}
			if w.over {
				break
			}
		}
	}
}

// A walk is one life, and what those who have to do with it believe.
type walk struct {
	life

	random *rand.Rand
	now    instant
	looks  instant // when the guard does
	rests  instant // until when nothing is made
	first  instant // when the first was begun of what stands
	over   bool

	pending  []pending // requests, in the order in which they were sent
	standing []string
	asked    map[string]instant // when an operator has asked for a place for its end, and the ensemble has noted that
	versions map[string]int32   // of the places' data
	made     int
	told     []promise
	fault    string
}

// A pending request has been carried out or not, and is not answered yet.
type pending struct {
	sent    instant
	makes   string // the place, of one that makes it
	checks  []check
	plain   bool
	carried bool
	answer  answer
}

// A promise is until when a caller counts on the session, and on which places then.
type promise struct {
	until  instant
	places []string
}

func newWalk(config *Config, seed uint64) *walk {
	const timeout = 15 * time.Second
	w := &walk{
		random: rand.New(rand.NewPCG(seed, 1)), now: seconds(1000), asked: map[string]instant{}, versions: map[string]int32{},
		life: life{
			negotiated: timeout, interval: config.interval(timeout), least: config.Validity(timeout).Least, proof: config.proof(timeout),
			barriers: barriers{placeBarriers: map[string]*placeBarrier{}}, sleepState: sleepState{unheard: config.unheard(timeout)},
		},
	}
	w.proof.opened(exchange{sent: w.now, answered: w.now})
	w.wanted, w.looks = w.now, w.overAt()
	return w
}

// follow keeps what the session would do with its guard.
func (w *walk) follow(what effects) {
	if what&guards != 0 {
		w.looks = w.overAt()
	}
	if w.looks > w.overAt() {
		w.fault = fmt.Sprintf("the guard looks at %v, and the session is over at %v", time.Duration(w.looks), time.Duration(w.overAt()))
	}
}

func (w *walk) step() {
	switch chance := w.random.IntN(100); {
	case chance < 20:
		w.pass(time.Duration(w.random.Int64N(int64(600 * time.Millisecond))))
	case chance < 22:
		w.pass(time.Duration(w.random.Int64N(int64(8 * time.Second))))
	case chance < 34:
		w.heartbeat()
	case chance < 36:
		if w.now >= w.rests {
			w.begin()
		} else if w.letGo(); w.now.since(w.wanted) >= w.negotiated {
			w.fallAsleep()
		}
	case chance < 60:
		w.carryOut()
	case chance < 84:
		w.answerNext()
	case chance < 90:
		w.tell()
	case chance < 92:
		w.ask()
	case chance < 96:
		w.see()
	case chance < 98:
		w.fallAsleep()
	case chance < 99:
		w.letGo()
	case w.now >= w.rests.add(20*time.Second):
		w.rests = w.now.add(time.Duration(w.random.Int64N(int64(60 * time.Second))))
	}
	w.judge()
}

// pass lets time go by, but not past the guard.
func (w *walk) pass(pause time.Duration) {
	w.now = min(w.now.add(pause), w.looks)
	if w.now < w.looks {
		return
	}
	if w.now >= w.overAt() {
		w.over = true
		return
	}
	w.looks = w.overAt()
}

// begin has a place made.
func (w *walk) begin() {
	if w.made++; w.bytes == 0 {
		w.first = w.now
	}
	name := fmt.Sprint("/", w.made)
	w.follow(w.stands(len(name), w.now))
	w.pending = append(w.pending, pending{sent: w.now, makes: name})
}

func (w *walk) heartbeat() {
	asks := pending{sent: w.now, plain: w.asleep && w.random.IntN(2) == 0}
	for _, place := range w.standing {
		if seen := w.placeBarriers[place]; !asks.plain && seen != nil && !seen.changed {
			asks.checks = append(asks.checks, check{place: place, version: seen.version, seen: seen})
		}
	}
	w.pending = append(w.pending, asks)
}

// carryOut has the ensemble carry out the oldest request that it has not.
func (w *walk) carryOut() {
	for i := range w.pending {
		of := &w.pending[i]
		if of.carried {
			continue
		}
		of.carried = true
		if of.makes != "" {
			w.versions[of.makes] = 0
		}
		for n, c := range of.checks {
			if w.versions[c.place] != c.version {
				of.answer = answer{held: of.checks[:n], refused: of.checks[n : n+1], why: recipes.ErrBadVersion}
				return
			}
		}
		of.answer.held = of.checks
		return
	}
}

func (w *walk) answerNext() {
	if len(w.pending) == 0 || !w.pending[0].carried {
		return
	}
	of := w.pending[0]
	w.pending = w.pending[1:]
	if w.now >= w.overAt() {
		return
	}
	if of.makes != "" {
		w.standing = append(w.standing, of.makes)
		w.follow(w.life.cover(of.makes, 0, of.sent, w.now))
	} else {
		w.take(of.answer, of.sent)
	}
	if of.plain {
		w.proof.answeredRequest(exchange{sent: of.sent, answered: w.now})
		w.plain = of.sent
	} else {
		w.proved(exchange{sent: of.sent, answered: w.now})
		w.plain = 0
		w.follow(w.endSleep(w.now))
	}
	w.follow(0)
}

func (w *walk) tell() {
	if left := w.assuredFor(w.now); left > 0 {
		w.told = append(w.told, promise{w.now.add(left), slices.Clone(w.standing)})
	}
}

// ask writes into the data of a place: that it has to go, or something harmless. The place may have been made, and its maker not know so yet.
func (w *walk) ask() {
	there := slices.Clone(w.standing)
	for _, of := range w.pending {
		if of.makes != "" && of.carried {
			there = append(there, of.makes)
		}
	}
	if len(there) == 0 {
		return
	}
	place := there[w.random.IntN(len(there))]
	w.versions[place]++
	if _, before := w.asked[place]; !before && w.random.IntN(3) == 0 {
		w.asked[place] = w.now
	}
}

// see has the holders of places see what was written: what is harmless, or that they are to let go, which they do sooner or later.
func (w *walk) see() {
	for _, place := range slices.Clone(w.standing) {
		if _, asked := w.asked[place]; !asked {
			w.life.saw(place, w.versions[place], 0, w.now)
		} else if w.random.IntN(2) == 0 {
			w.leave(place)
		}
	}
	w.follow(0)
}

func (w *walk) fallAsleep() {
	switch {
	case !w.mayFallAsleep(w.now):
	case len(w.standing)+w.underWay() > 0:
		w.fault = "the session may fall asleep, and something stands on it"
	default:
		w.asleep = true
	}
}

// underWay is how many places are being made.
func (w *walk) underWay() (sum int) {
	for _, of := range w.pending {
		if of.makes != "" {
			sum++
		}
	}
	return sum
}

// letGo has everything go that stands.
func (w *walk) letGo() {
	for _, place := range slices.Clone(w.standing) {
		w.leave(place)
	}
	w.follow(0)
}

// leave has a place go, unless the session is over. Callers do not count on it any more.
func (w *walk) leave(place string) {
	w.life.uncover(place, w.now)
	if w.placeBarriers[place] != nil {
		return
	}
	w.bytes -= len(place)
	w.wanted = w.now
	delete(w.asked, place)
	isIt := func(other string) bool { return other == place }
	w.standing = slices.DeleteFunc(w.standing, isIt)
	for i := range w.told {
		w.told[i].places = slices.DeleteFunc(w.told[i].places, isIt)
	}
}

// judge looks whether anything that was told is not so.
func (w *walk) judge() {
	if w.asleep && w.bytes > 0 && w.overAt() > w.first.add(w.proof.lifetime()) {
		w.fault = "a session that slept is not proved in time, and goes on"
	}
	for _, each := range w.told {
		if w.over && w.now < each.until {
			w.fault = fmt.Sprintf("the session is over, and a caller was told that it is valid until %v", time.Duration(each.until))
		}
		for _, place := range each.places {
			if asked, is := w.asked[place]; is && each.until > asked.add(w.proof.lifetime()) {
				w.fault = fmt.Sprintf("%s was asked for at %v, and a caller was told that it is valid until %v",
					place, time.Duration(asked), time.Duration(each.until))
			}
		}
	}
}
