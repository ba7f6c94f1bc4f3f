package recipes_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var orders = recipes.Lock{Path: "/locks/orders"}

// A world is an ensemble in virtual time and the test that goes on in it.
type world struct {
	*testing.T
	*standin.Ensemble
	living context.Context // ends with the test, while its bubble is still there
}

func inBubble(t *testing.T, test func(world)) {
	inBubbleWith(t, standin.Options{}, test)
}

func inBubbleWith(t *testing.T, options standin.Options, test func(world)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		e := standin.New(options)
		defer e.Close()
		ctx, end := context.WithCancel(context.Background())
		defer synctest.Wait()
		defer end()
		test(world{t, e, ctx})
	})
}

func (w world) session() *standin.Session { return w.OpenSession(10 * time.Second) }

// A contender is one place and how far it has come: "waiting", "holding", "asked" to let go, or how it has ended.
type contender struct {
	session *standin.Session
	store   recipes.Store
	place   *recipes.Place
	leave   context.CancelFunc
	over    chan struct{}

	looks int
	mu    sync.Mutex // of state, for those who look at it without being heard of
	state string
	hold  *recipes.Hold
}

// join takes a place with a session of its own, waits for its turn and holds until it is told to leave.
func (w world) join(mode recipes.Mode) *contender {
	w.Helper()
	return w.joinWith(w.session(), orders, mode)
}

func (w world) joinWith(session *standin.Session, lock recipes.Lock, mode recipes.Mode) *contender {
	w.Helper()
	place, err := lock.Join(w.living, session, mode, recipes.About{Owner: mode.String()})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.living)
	c := &contender{session: session, store: session, place: place, leave: cancel, over: make(chan struct{}), state: "waiting"}
	go func() {
		defer close(c.over)
		defer place.Leave(w.living)
		c.becomes(ending(c.live(ctx)))
	}()
	synctest.Wait()
	return c
}

// ending is a word for the error that ended a contender.
func ending(err error) string {
	for _, e := range []struct {
		err  error
		word string
	}{
		{context.Canceled, "left"},
		{errBroken, "broken"},
		{recipes.ErrGone, "gone"},
		{recipes.ErrKindMismatch, "mismatch"},
		{recipes.ErrDirectory, "directory"},
		{recipes.ErrDenied, "denied"},
		{recipes.ErrSessionEnded, "ended"},
	} {
		if errors.Is(err, e.err) {
			return e.word
		}
	}
	return err.Error()
}

var errBroken = errors.New("broken")

func (c *contender) becomes(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
}

// is what the contender is now.
func (c *contender) is() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *contender) live(ctx context.Context) error {
	hold, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	c.hold = hold
	c.becomes("holding")
	for {
		asked, changed, err := hold.Look(ctx)
		switch {
		case err != nil:
			return err
		case asked.Break:
			return errBroken
		case asked.Asked:
			c.becomes("asked")
		}
		if err := wait(ctx, changed.Done(), nil); err != nil {
			return err
		}
	}
}

func (c *contender) acquire(ctx context.Context) (*recipes.Hold, error) {
	if hold := c.place.GrantAtOnce(); hold != nil {
		return hold, nil
	}
	for {
		c.looks++
		turn, err := c.place.Look(ctx)
		switch {
		case err != nil:
			return nil, err
		case turn.Revocation.Break:
			return nil, errBroken
		case turn.First:
			left, err := c.place.OutwaitDelay(ctx, c.store)
			if err == nil && left == 0 {
				return c.place.Grant(ctx)
			}
			if err == nil {
				err = wait(ctx, passed(left), turn.Marked.Done())
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		if err := wait(ctx, turn.Changed.Done(), turn.Marked.Done()); err != nil {
			return nil, err
		}
	}
}

// passed is a channel that is closed when the time is over.
func passed(d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	time.AfterFunc(d, func() { close(over) })
	return over
}

func wait(ctx context.Context, changed, marked <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-marked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// quit has the contender leave and waits until it has.
func (c *contender) quit() {
	c.leave()
	<-c.over
	synctest.Wait()
}

// expect compares the states of contenders, in one string.
func (w world) expect(want string, contenders ...*contender) {
	w.Helper()
	synctest.Wait()
	var states []string
	for _, c := range contenders {
		states = append(states, c.is())
	}
	if got := strings.Join(states, ", "); got != want {
		w.Fatalf("contenders are %s; want %s", got, want)
	}
}

// foreign makes somebody else's node in the lock's directory.
func (w world) foreign(name string, mode embedded.Mode, data string) (path string) {
	w.Helper()
	owner := int64(0)
	if mode == embedded.Ephemeral || mode == embedded.EphemeralSequential {
		owner = w.session().ID()
	}
	path, err := w.Create(orders.Path+"/"+name, []byte(data), mode, owner)
	if err != nil {
		w.Fatal(err)
	}
	return path
}

func (w world) delete(path string) {
	w.Helper()
	if err := w.Delete(path); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// startAt has the lock's next place get this number.
func (w world) startAt(number int32) {
	w.Helper()
	if len(w.Names("/locks")) == 0 {
		if _, err := w.Create(orders.Path, nil, embedded.Container, 0); err != nil {
			w.Fatal(err)
		}
	}
	if err := w.SetSequence(orders.Path, number); err != nil {
		w.Fatal(err)
	}
}

// pathOf is where a contender's node is: the only one whose owner is its session.
func (w world) pathOf(c *contender) string {
	w.Helper()
	for _, name := range w.Names(orders.Path) {
		path := orders.Path + "/" + name
		if node, err := w.Read(path); err == nil && c.session.Owns(node) {
			return path
		}
	}
	w.Fatal("the contender has no node")
	return ""
}

// empty fails if anything is left in the lock's directory.
func (w world) empty() {
	w.Helper()
	if names := w.Names(orders.Path); len(names) > 0 {
		w.Errorf("left behind: %q", names)
	}
}
