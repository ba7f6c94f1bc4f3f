package simulation_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// A tap lies on the connections to the servers. It notes what each handshake says that its client has seen, and can have the requests
// that make or delete places be written in part.
type tap struct {
	mu    sync.Mutex
	seen  map[int64][]uint64 // the zxids in the handshakes, by session
	asked []uint32           // the numbers of the requests that make places
	tears int                // how many requests are still torn
}

type tapConn struct {
	net.Conn
	by      *tap
	greeted bool
}

func (p *tap) dialer(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &tapConn{Conn: conn, by: p}, nil
	}
}

var errTorn = errors.New("torn")

// Write takes whole frames.
func (c *tapConn) Write(frame []byte) (int, error) {
	c.by.mu.Lock()
	defer c.by.mu.Unlock()
	if !c.greeted {
		c.greeted = true
		session := int64(binary.BigEndian.Uint64(frame[20:]))
		c.by.seen[session] = append(c.by.seen[session], binary.BigEndian.Uint64(frame[8:]))
		return c.Conn.Write(frame)
	}
	if binary.BigEndian.Uint32(frame[8:]) == kindPlace {
		c.by.asked = append(c.by.asked, binary.BigEndian.Uint32(frame[4:]))
	}
	if kind := binary.BigEndian.Uint32(frame[8:]); c.by.tears > 0 && (kind == kindPlace || kind == kindDelete) {
		c.by.tears--
		n, _ := c.Conn.Write(frame[:len(frame)/2])
		return n, errTorn
	}
	return c.Conn.Write(frame)
}

func (p *tap) tear(requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tears = requests
}

// handshakes are the zxids in those that came back to the session.
func (p *tap) handshakes(session int64) []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[session]
}

// tappedClient is a client with a tap on its connections.
func tappedClient(t *testing.T, e *simulation.Ensemble) (*zookeeper.Client, *tap) {
	t.Helper()
	p, began := &tap{seen: map[int64][]uint64{}}, time.Now()
	c, err := zookeeper.New(zookeeper.Config{
		Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Directories: []string{"/locks"},
		Dial: p.dialer(e.Dialer(0)), Clock: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

// The library does not know of the answers to our own requests, and a server that lags behind one must not be taken for a newer one.
func TestAHandshakeTellsWhatOurOwnRequestsHaveShown(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		c, p := tappedClient(t, e)
		defer c.Close()
		s := w.open(t, c)
		made, err := s.Enqueue(t.Context(), "/locks/orders", "-lock-", nil)
		if err != nil {
			t.Fatal(err)
		}
		name := made.Name
		node, _ := e.Stat("/locks/orders/" + name)
		e.Reset(0, e.ServerOf(s.ID()))
		time.Sleep(time.Second)
		handshakes := p.handshakes(s.ID())
		if len(handshakes) == 0 {
			t.Fatal("the session has not come back")
		}
		for _, seen := range handshakes {
			if seen < uint64(node.Czxid) {
				t.Errorf("a handshake says %x, and the place was made by %x", seen, node.Czxid)
			}
		}
		w.close(s)
	})
}

// A server takes what is committed for what it was asked under the same number by the same session, over whatever connection.
func TestASessionUsesNoNumberTwice(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		c, p := tappedClient(t, e)
		defer c.Close()
		s := w.open(t, c)
		for range 5 {
			mustJoin(t, s).Leave(t.Context())
			e.Reset(0, e.ServerOf(s.ID()))
			time.Sleep(time.Second)
		}
		slices.Sort(p.asked)
		if distinct := slices.Compact(slices.Clone(p.asked)); len(p.asked) < 5 || len(distinct) < len(p.asked) {
			t.Errorf("requests were made under the numbers %x", p.asked)
		}
		w.close(s)
	})
}

// What was written in part is lost with its connection, and what became of it is found out.
func TestARequestThatIsWrittenInPartCostsItsConnection(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		c, p := tappedClient(t, e)
		defer c.Close()
		s := w.open(t, c)
		place, err := (recipes.Lock{Path: "/locks/orders"}).Join(t.Context(), s, recipes.Exclusive, recipes.About{})
		if err != nil {
			t.Fatal(err)
		}
		place.Leave(t.Context())
		for tears := 1; tears <= 3; tears++ {
			began := time.Now()
			p.tear(tears)
			made, err := s.Enqueue(t.Context(), "/locks/orders", "-lock-", nil)
			if err != nil {
				t.Fatal(err)
			}
			name := made.Name
			if names := e.Names("/locks/orders"); len(names) != 1 || names[0] != name {
				t.Errorf("%d torn: made %q, and there are %q", tears, name, names)
			}
			p.tear(tears)
			s.Dequeue(t.Context(), "/locks/orders/"+name)
			if names := e.Names("/locks/orders"); len(names) != 0 {
				t.Errorf("%d torn: left behind: %q", tears, names)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("%d torn: it took %v", tears, took)
			}
			time.Sleep(5 * time.Second)
		}
		if err := s.Err(); err != nil {
			t.Error(err)
		}
		w.close(s)
	})
}

// The list that is written behind the making of a place may fail alone. Then the place waits for its turn like any other.
func TestAPlaceStandsThoughTheListBehindItFails(t *testing.T) {
	for name, code := range map[string]int32{"the connection is lost": codeLost, "throttled": codeThrottled, "denied": codeNoAuth} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				by := &refuser{}
				c := refusing(t, e, by)
				defer c.Close()
				s := w.open(t, c)
				place := mustJoin(t, s)
				place.Leave(t.Context())
				refusal := by.refuse(kindList, code, 1)
				place = mustJoin(t, s)
				if place.GrantAtOnce() != nil || by.count(refusal) != 1 {
					t.Error("it was granted as it was made")
				}
				turn, err := place.Look(t.Context())
				if err != nil || !turn.First {
					t.Fatal(turn, err)
				}
				hold, err := place.Grant(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if node, _ := e.Stat("/locks/orders/" + e.Names("/locks/orders")[0]); hold.Token != node.Czxid {
					t.Errorf("the token is %x, and the place was made by %x", hold.Token, node.Czxid)
				}
				place.Leave(t.Context())
				w.close(s)
			})
		})
	}
}

// A long list is not taken in by leases, each of which would have it sent, but read once for all.
func TestALongQueueIsListedByTheReaderAlone(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		c := refusing(t, e, &refuser{})
		defer c.Close()
		crowd, s := w.open(t, c), w.open(t, c)
		var places []*recipes.Place
		for range 400 {
			places = append(places, mustJoin(t, crowd))
		}
		last := mustJoin(t, s)
		turn, err := last.Look(t.Context())
		if err != nil || turn.First || turn.Position != 400 {
			t.Fatal(turn, err)
		}
		made, err := s.Enqueue(t.Context(), "/locks/orders", "-lock-", nil)
		if err != nil || made.Queue != nil || made.Czxid == 0 {
			t.Errorf("%d names are listed, made by %x: %v", len(made.Queue), made.Czxid, err)
		}
		for _, place := range places {
			place.Leave(t.Context())
		}
		time.Sleep(time.Minute)
		made, err = s.Enqueue(t.Context(), "/locks/orders", "-lock-", nil)
		if err != nil || len(made.Queue) != 3 {
			t.Errorf("%q are listed after a while: %v", made.Queue, err)
		}
		if err := s.Err(); err != nil {
			t.Error(err)
		}
		w.close(crowd)
		w.close(s)
	})
}

func mustJoin(t *testing.T, s *zookeeper.Session) *recipes.Place {
	t.Helper()
	place, err := recipes.Lock{Path: "/locks/orders"}.Join(t.Context(), s, recipes.Exclusive, recipes.About{})
	if err != nil {
		t.Fatal(err)
	}
	return place
}
