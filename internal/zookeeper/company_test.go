package zookeeper

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Companies are walked at random: members come, go and become silent, and the prober's heartbeats are answered, late, or not at all. Whoever
// relies on others is proved by them, or told in time that they are late.
func TestACompanyTellsItsMembersWhenNobodyProvesThem(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5000) {
		w := newCompanyWalk(seed)
		for range 400 {
			if w.step(); w.fault != "" {
				t.Fatalf("seed %d at %v: %s", seed, time.Duration(w.now), w.fault)
			}
		}
	}
}

// A companyWalk is one company, and what its members do.
type companyWalk struct {
	company[int]

	random   *rand.Rand
	now      instant
	newest   int
	sent     instant // the heartbeat of a prober that is not answered yet; 0 if there is none
	by       int
	passedOn instant // the newest that was half late and is not answered yet
	passedBy int
	before   instant // the newest that counts
	quiet    instant // since when a heartbeat is half late and none has been answered; 0 if that is not so
	left     instant // when the prober has left and the company has summoned no other; 0 if none has left
	fault    string
}

func newCompanyWalk(seed uint64) *companyWalk {
	patience := []time.Duration{0, time.Second}[seed%2]
	return &companyWalk{random: rand.New(rand.NewPCG(seed, 3)), now: seconds(1000), company: newCompany[int](2*time.Second, patience)}
}

func (w *companyWalk) step() {
	w.now = max(w.now, min(w.nextTick(), w.now.add(time.Duration(w.random.Int64N(int64(time.Second))))))
	w.look()
	switch w.random.IntN(8) {
	case 0:
		w.newest++
		w.enter(w.newest)
	case 1:
		w.goAway()
	case 2, 3:
		w.send()
	case 4, 5:
		w.answer()
	}
	if w.sent != 0 && w.now.since(w.sent) >= w.interval/2 && w.pass(w.by, w.now) {
		if w.quiet == 0 {
			w.quiet = w.now
		}
		w.passedOn, w.passedBy, w.sent = w.sent, w.by, 0
	}
	w.judge()
}

// look does what is due.
func (w *companyWalk) look() {
	summons, doubts := w.tick(w.now)
	if summons {
		w.left = 0
	}
	if doubts {
		if len(w.members) < 2 || w.quiet == 0 || w.now.since(w.quiet) < w.patience {
			w.fault = "the company calls contact late too soon, or for no member"
		}
		w.quiet = never
	}
}

func (w *companyWalk) goAway() {
	if len(w.members) == 0 {
		return
	}
	who := w.random.IntN(len(w.members))
	if who == 0 && len(w.members) > 1 && w.left == 0 {
		w.left = w.now
	}
	w.leave(w.members[who])
	if len(w.members) < 2 {
		w.quiet = 0
	}
	if len(w.members) == 0 {
		w.left, w.sent = 0, 0
	}
}

func (w *companyWalk) send() {
	if w.sent == 0 && len(w.members) > 0 {
		w.sent, w.by = w.now, w.members[0]
	}
}

// answer has a heartbeat answered: the prober's, or one that was half late.
func (w *companyWalk) answer() {
	sent, by := w.sent, w.by
	if w.sent = 0; sent == 0 {
		sent, by, w.passedOn = w.passedOn, w.passedBy, 0
	}
	if sent == 0 || !slices.Contains(w.members, by) {
		return
	}
	before, counts := w.proved, w.members[0] == by || w.quiet != 0
	shown := sharedHeartbeat{of: w.before, sent: sent}
	switch accepted, proves := w.accepts(by, shown, w.now), sent.since(w.before) < 2*w.interval; {
	case accepted != counts:
		w.fault = fmt.Sprintf("%d proves the others: %t", by, accepted)
	case accepted && proves && w.proved != w.now, !(accepted && proves) && w.proved != before:
		w.fault = fmt.Sprintf("the others count as proved at %v", time.Duration(w.proved))
	}
	if counts {
		w.quiet, w.before = 0, max(w.before, sent)
	}
}

// judge looks whether a member relies on a prober that is gone.
func (w *companyWalk) judge() {
	probers := 0
	for _, each := range w.members {
		leads, accompanied, proved := w.roleOf(each, w.now)
		if leads {
			probers++
		}
		if accompanied != (len(w.members) > 1) || proved && (leads || w.now.since(w.proved) >= 2*w.interval) {
			w.fault = fmt.Sprintf("%d relies on a heartbeat of %v", each, time.Duration(w.proved))
		}
	}
	switch {
	case len(w.members) > 1 && probers != 1:
		w.fault = fmt.Sprintf("%d probers", probers)
	case w.quiet != 0 && w.now.since(w.quiet) > w.patience:
		w.fault = "no member is told that contact is late"
	case w.left != 0 && w.now > max(w.left, w.proved.add(w.interval/2)):
		w.fault = "the next prober is not summoned"
	}
}
