package endtoend

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// The sessions of the sidecars whose callers are killed, and how long the ensemble may take to expire one: it looks once a
// tick, and this machine is busy.
const (
	killedTimeout = 2 * time.Second
	killedLinger  = killedTimeout + 3*quickTick + 3*time.Second
)

func TestNobodyWhoIsKilledLeavesANodeForLongerThanItsSession(t *testing.T) {
	e := ensembleOf(t, quickTick)
	chosen := *seed
	if chosen == 0 {
		chosen = rand.Uint64()
	}
	t.Logf("again with -seed=%d", chosen)
	began := time.Now()
	fleet := newFleet(t, setup{servers: e.ClientAddresses(), tick: quickTick, timeout: killedTimeout}, chosen)
	watch := &coroner{direct: connect(t, e), names: fleet.names, died: map[string]moment{}, owners: map[string]string{}}
	for range *kills {
		await(t, "a moment", patient, after(30*time.Millisecond+time.Duration(fleet.random.IntN(100))*time.Millisecond))
		watch.note(fleet.killSomebody(t))
		watch.look(t)
	}
	watch.note(fleet.killAll())
	for last := now(); watch.look(t) > 0; {
		if now().since(last) > 2*killedLinger {
			t.Fatal("somebody's node stays for ever")
		}
		await(t, "a moment", patient, after(100*time.Millisecond))
	}
	if len(watch.owners) < *kills {
		t.Errorf("only %d places were seen: the callers did next to nothing", len(watch.owners))
	}
	t.Logf("%d kills in %v; %d places were seen; a dead caller's place was last seen %v after its death",
		*kills, time.Since(began), len(watch.owners), watch.longest)
}

// A fleet is some sidecars with some callers each, that are killed and replaced.
type fleet struct {
	setup  setup
	names  []string
	random *rand.Rand
	crews  []*crew
	born   int // callers so far
}

type crew struct {
	sidecar *sidecar
	callers []caller
}

type caller struct {
	*process

	owner string
}

func newFleet(t *testing.T, with setup, seed uint64) *fleet {
	t.Helper()
	f := &fleet{setup: with, random: rand.New(rand.NewPCG(seed, 0))}
	for i := range 3 {
		f.names = append(f.names, fmt.Sprintf("kills/%d-%d", seed, i))
	}
	for range 2 {
		f.crews = append(f.crews, &crew{})
		f.launch(t, len(f.crews)-1)
	}
	return f
}

// launch puts a new sidecar with new callers in a crew's place.
func (f *fleet) launch(t *testing.T, number int) {
	t.Helper()
	f.crews[number] = &crew{sidecar: launchSidecar(t, f.setup)}
	for range callersPerSidecar {
		f.crews[number].callers = append(f.crews[number].callers, f.hire(t, f.crews[number].sidecar))
	}
}

const callersPerSidecar = 3

func (f *fleet) hire(t *testing.T, s *sidecar) caller {
	t.Helper()
	f.born++
	owner := fmt.Sprintf("caller-%d", f.born)
	return caller{startCaller(t, s, callerOrder{Owner: owner, Names: f.names, Seed: f.random.Uint64()}), owner}
}

// killSomebody kills a caller, or a sidecar with what depends on it, and replaces it. It returns the owners of the places
// that nobody has any more, some of which may have ended by themselves.
func (f *fleet) killSomebody(t *testing.T) (dead []string) {
	t.Helper()
	number, victim := f.random.IntN(len(f.crews)), f.random.IntN(callersPerSidecar+1)
	c := f.crews[number]
	if victim == callersPerSidecar {
		c.sidecar.kill()
		dead = c.killCallers()
		f.launch(t, number)
		return dead
	}
	c.callers[victim].kill()
	for i, caller := range c.callers {
		select {
		case <-caller.exited:
			dead = append(dead, caller.owner)
			c.callers[i] = f.hire(t, c.sidecar)
		default:
		}
	}
	return dead
}

func (c *crew) killCallers() (dead []string) {
	for _, caller := range c.callers {
		caller.kill()
		dead = append(dead, caller.owner)
	}
	return dead
}

func (f *fleet) killAll() (dead []string) {
	for _, c := range f.crews {
		c.sidecar.kill()
		dead = append(dead, c.killCallers()...)
	}
	return dead
}

// A coroner sees whose places are still there, past all sidecars.
type coroner struct {
	direct  *zk.Conn
	names   []string
	died    map[string]moment // by owner
	owners  map[string]string // of all places ever seen, by path
	longest time.Duration     // that a place was seen after its owner's death
}

func (c *coroner) note(dead []string) {
	for _, owner := range dead {
		c.died[owner] = now()
	}
}

// look fails the test for each place whose owner has been dead for too long, and returns how many places there are.
func (c *coroner) look(t *testing.T) (places int) {
	t.Helper()
	for _, name := range c.names {
		names, _, err := c.direct.Children(directory(name))
		if err == zk.ErrNoNode {
			continue
		}
		must(t, err)
		for _, child := range names {
			path := directory(name) + "/" + child
			owner, ok := c.ownerOf(t, path)
			if !ok {
				continue
			}
			places++
			died, dead := c.died[owner]
			if !dead {
				continue
			}
			c.longest = max(c.longest, now().since(died))
			if now().since(died) > killedLinger {
				t.Fatalf("%s is still there %v after the death of %s", path, now().since(died), owner)
			}
		}
	}
	return places
}

// ownerOf reads who is behind a place, if it is still there.
func (c *coroner) ownerOf(t *testing.T, path string) (owner string, ok bool) {
	t.Helper()
	if owner, ok := c.owners[path]; ok {
		return owner, true
	}
	data, _, err := c.direct.Get(path)
	if err == zk.ErrNoNode {
		return "", false
	}
	must(t, err)
	var form struct {
		Owner string `json:"owner"`
	}
	must(t, json.Unmarshal(data, &form))
	c.owners[path] = form.Owner
	return form.Owner, true
}
