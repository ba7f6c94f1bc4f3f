package simulation_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// refusing is a client to which some requests are refused.
func refusing(t *testing.T, e *simulation.Ensemble, by *refuser, adjust ...func(*zookeeper.Config)) *zookeeper.Client {
	t.Helper()
	began := time.Now()
	config := zookeeper.Config{
		Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Directories: []string{"/locks"}, Dial: by.dialer(e.Dialer(0)),
		Clock: func() time.Duration { return time.Since(began) },
	}
	for _, each := range adjust {
		each(&config)
	}
	c, err := zookeeper.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// owned are what a session owns, and how it gives that up.
var owned = []struct {
	name   string
	make   func(context.Context, *zookeeper.Session) (path string, gone <-chan struct{}, err error)
	giveUp func(context.Context, *zookeeper.Session, string)
}{
	{
		"place",
		func(ctx context.Context, s *zookeeper.Session) (string, <-chan struct{}, error) {
			made, err := s.Enqueue(ctx, "/locks/orders", "-lock-", nil)
			name, gone := made.Name, made.Gone
			return "/locks/orders/" + name, gone.Done(), err
		},
		func(ctx context.Context, s *zookeeper.Session, path string) { s.Dequeue(ctx, path) },
	},
	{
		"member",
		func(ctx context.Context, s *zookeeper.Session) (string, <-chan struct{}, error) {
			_, gone, err := s.Create(ctx, "/locks/orders/member", nil)
			return "/locks/orders/member", gone.Done(), err
		},
		func(ctx context.Context, s *zookeeper.Session, path string) { s.Delete(ctx, path) },
	},
}

// What nobody wants any more must not stand in others' way until its session ends.
func TestWhatIsGivenUpGoesThoughItsDeletionIsRefusedForAWhile(t *testing.T) {
	for _, thing := range owned {
		for _, code := range []int32{codeNoAuth, codeThrottled} {
			t.Run(fmt.Sprint(thing.name, code), func(t *testing.T) {
				inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
					by := &refuser{}
					c := refusing(t, e, by)
					defer c.Close()
					s := w.open(t, c)
					defer w.close(s)
					path, gone, err := thing.make(t.Context(), s)
					if err != nil {
						t.Fatal(err)
					}
					refused := by.refuse(kindDelete, code, 12)
					began := time.Now()
					thing.giveUp(t.Context(), s, path)
					e.Await()
					if names := e.Names("/locks/orders"); len(names) > 0 || by.count(refused) < 12 {
						t.Errorf("given up after %d refusals, and there still are %q", by.count(refused), names)
					}
					if took := time.Since(began); took < 5*time.Second || took > 30*time.Second {
						t.Errorf("twelve refusals in %v", took)
					}
					select {
					case <-gone:
						t.Error("it was told that somebody else had deleted it")
					default:
					}
					if s.Err() != nil {
						t.Error(s.Err())
					}
				})
			})
		}
	}
}

func TestASessionEndsWithWhatTheEnsembleRefusesToDelete(t *testing.T) {
	for _, code := range []int32{codeNoAuth, codeThrottled} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				by := &refuser{}
				c := refusing(t, e, by)
				defer c.Close()
				s := w.open(t, c)
				var paths []string
				for _, thing := range owned {
					path, _, err := thing.make(t.Context(), s)
					if err != nil {
						t.Fatal(err)
					}
					paths = append(paths, path)
				}
				by.refuse(kindDelete, code, -1)
				var leaving sync.WaitGroup
				leaving.Go(func() { s.Dequeue(context.Background(), paths[0]) })
				time.Sleep(3 * time.Second)
				leaving.Go(func() { w.close(s) })
				time.Sleep(time.Second)
				if s.Err() == nil {
					t.Error("a session that is being closed waits for what is refused")
					by.refuse(kindDelete, code, 0)
				}
				leaving.Wait()
				e.Await()
				if names := e.Names("/locks/orders"); len(names) > 0 {
					t.Errorf("left behind: %q", names)
				}
			})
		})
	}
}

// A server that has too much to do says that it has done nothing; whoever asked asks again.
func TestWhatIsThrottledIsDoneLater(t *testing.T) {
	for _, thing := range owned {
		t.Run(thing.name, func(t *testing.T) {
			inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				by := &refuser{}
				c := refusing(t, e, by)
				defer c.Close()
				s := w.open(t, c)
				defer w.close(s)
				for _, kind := range []uint32{kindCreate, kindPlace, kindCreateContainer, kindMulti} {
					by.refuse(kind, codeThrottled, 3)
				}
				if _, _, err := thing.make(t.Context(), s); err != nil {
					t.Error(err)
				}
				e.Await()
				if names := e.Names("/locks/orders"); len(names) != 1 {
					t.Errorf("in the directory: %q", names)
				}
			})
		})
	}
}

func TestADirectoryWhoseMakingIsThrottledStillVanishesWhenItIsEmpty(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		by := &refuser{}
		c := refusing(t, e, by)
		defer c.Close()
		s := w.open(t, c)
		defer w.close(s)
		if _, _, err := s.Create(t.Context(), "/locks/stock/member", nil); err != nil { // what is above is there for good
			t.Fatal(err)
		}
		container, forGood := by.refuse(kindCreateContainer, codeThrottled, 3), by.refuse(kindPlace, codeNoAuth, -1)
		if _, _, err := s.Create(t.Context(), "/locks/orders/member", nil); err != nil {
			t.Error(err)
		}
		if by.count(container) != 3 || by.count(forGood) > 0 {
			t.Errorf("throttled %d times, and made for good %d times", by.count(container), by.count(forGood))
		}
	})
}

// A place whose creation was not answered is looked for, and a search that is throttled has not found that there is none.
func TestAPlaceIsFoundAgainThoughTheSearchIsThrottled(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		by := &refuser{}
		c := refusing(t, e, by)
		defer c.Close()
		s := w.open(t, c)
		defer w.close(s)
		if _, err := s.Enqueue(t.Context(), "/locks/orders", "-lock-", nil); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			by.refuse(kindPlace, codeLost, 1)
			by.refuse(kindMulti, codeThrottled, 6)
			if _, err := s.Enqueue(t.Context(), "/locks/orders", "-lock-", nil); err != nil {
				t.Error(err)
			}
		}
		e.Await()
		if names := e.Names("/locks/orders"); len(names) != 6 {
			t.Errorf("%d places of the 6 that were made", len(names))
		}
	})
}
