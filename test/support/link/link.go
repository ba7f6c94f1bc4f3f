// Package link is a TCP link that can be cut, for tests of what happens when the network does.
//
// A [Link] listens on the loopback interface and forwards every connection to a target, byte for byte and in order.
// While connections run, each [Direction] can be stalled, made to lose what it carries, slowed down and healed; all
// connections can be reset, new ones refused. On a link that reads ZooKeeper's frames, a [Trap] cuts a connection at
// the one place a byte counter cannot hit: after the server has executed a request and before the client learns it.
//
// All methods may be called at any time from any goroutine. A call that changes the link holds for every byte that
// arrives after it has returned, and for every byte that the link still holds.
package link

import (
	"context"
	"net"
	"sync"
	"time"
)

// A Direction is a way bytes take through a link. The server is the target, the client the one who dials the link.
type Direction int

// The two ways through a link. Calls that take directions mean both if given none.
const (
	ToServer Direction = iota
	ToClient
)

// A Mode is what a link does with the bytes of one direction.
type Mode int

const (
	// Pass delivers.
	Pass Mode = iota
	// Stall takes bytes in and keeps them, as a network does that will recover: they are delivered, in order and in one
	// burst, when the direction passes again. So is the end of a stream.
	Stall
	// Drop swallows what the link holds and what arrives, ends of streams included. A connection that has lost
	// anything stays dead in that direction after the link has healed, though it is open.
	Drop
)

// Options say what a link connects.
type Options struct {
	// Address is what the link listens on. The default is a port of the system's choice on 127.0.0.1.
	Address string
	// Target is the address connections are forwarded to; it can be set later.
	Target string
	// Patience is how long the target may refuse a connection before the client's is reset. A client that would have been
	// refused itself might have tried again; through a link it has connected, and sees its connection break.
	Patience time.Duration
	// ZooKeeper makes the link read the frames of ZooKeeper's client protocol, which traps and [Link.Requests] need.
	// Frames are then forwarded whole. A connection that speaks anything else (TLS, four-letter words) is forwarded as
	// it is, unread.
	ZooKeeper bool
	// HTTP2 makes the link read the frames that the target sends as a server of HTTP/2, which [Link.GoAway] needs. Frames
	// are then forwarded whole.
	HTTP2 bool
	// Rewrite, if set, is given the first bytes a client sends on each connection, as one read returned them, and returns
	// what is forwarded in their place.
	Rewrite func(first []byte) []byte
}

// A Link forwards connections until it is closed.
type Link struct {
	listener net.Listener
	options  Options
	running  sync.WaitGroup

	mutex       sync.Mutex
	target      string
	refusing    bool
	closed      bool
	loses       uint32        // one of so many packets; 0 if none
	idle        time.Duration // after which a connection is reset that carries nothing; 0 if none is
	ways        [2]way
	connections map[*connection]struct{}
	traps       []*Trap
	requests    map[Opcode]int
	changed     chan struct{} // closed and replaced whenever something that await looks at may have changed
}

// A way is what is imposed on one direction.
type way struct {
	mode          Mode
	delay, jitter time.Duration
	slice         int // how many bytes are delivered at once; 0 if all are
}

// New opens a link. The caller must close it.
func New(options Options) (*Link, error) {
	address := options.Address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := listen(address)
	if err != nil {
		return nil, err
	}
	l := &Link{
		listener:    listener,
		options:     options,
		target:      options.Target,
		connections: map[*connection]struct{}{},
		requests:    map[Opcode]int{},
		changed:     make(chan struct{}),
	}
	l.running.Go(l.accept)
	return l, nil
}

// listen listens for plain TCP: what is multipath takes no packet filter.
func listen(address string) (net.Listener, error) {
	var settings net.ListenConfig
	settings.SetMultipathTCP(false)
	return settings.Listen(context.Background(), "tcp", address)
}

// Address is where the link listens.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Port is the port of Address.
func (l *Link) Port() int { return l.listener.Addr().(*net.TCPAddr).Port }

// SetTarget sets where connections accepted from now on are forwarded to.
func (l *Link) SetTarget(address string) {
	l.change(func() { l.target = address })
}

// Stall holds bytes back. A connection made while ToServer is stalled is accepted but not forwarded, so that the
// client sees a server that accepts and never answers; if the client has gone by the time the link heals, the server
// never hears of it.
func (l *Link) Stall(directions ...Direction) { l.Set(Stall, directions...) }

// Drop loses bytes.
func (l *Link) Drop(directions ...Direction) { l.Set(Drop, directions...) }

// Heal delivers what was held back and passes bytes on again. Without a direction it also ends Refuse.
func (l *Link) Heal(directions ...Direction) { l.Set(Pass, directions...) }

// Set puts directions into a mode.
func (l *Link) Set(mode Mode, directions ...Direction) {
	l.change(func() {
		for _, direction := range either(directions) {
			l.ways[direction].mode = mode
		}
		if mode == Pass && len(directions) == 0 {
			l.refusing = false
		}
	})
}

// Delay delivers bytes that arrive from now on later by fixed plus a random part of jitter, never out of order.
func (l *Link) Delay(fixed, jitter time.Duration, directions ...Direction) {
	l.change(func() {
		for _, direction := range either(directions) {
			l.ways[direction].delay, l.ways[direction].jitter = fixed, jitter
		}
	})
}

// Slice delivers what arrives from now on in pieces of so many bytes, a millisecond apart; 0 ends it.
func (l *Link) Slice(bytes int, directions ...Direction) {
	l.change(func() {
		for _, direction := range either(directions) {
			l.ways[direction].slice = bytes
		}
	})
}

// CutIdle resets connections that have carried nothing for so long, as proxies do; 0 ends it.
func (l *Link) CutIdle(after time.Duration) {
	l.change(func() {
		l.idle = after
		for c := range l.connections {
			c.used()
		}
	})
}

// Refuse resets every new connection at once, until Heal. Present connections are left alone.
func (l *Link) Refuse() {
	l.change(func() { l.refusing = true })
}

// Reset resets all present connections, on both sides; what the link held of them is lost.
func (l *Link) Reset() {
	l.change(l.endAll)
}

// ResetDead resets those connections that have lost bytes and are dead in a direction, as a network does that has
// forgotten them.
func (l *Link) ResetDead() {
	l.change(func() {
		for c := range l.connections {
			if c.pumps[ToServer].lost || c.pumps[ToClient].lost {
				c.end()
			}
		}
	})
}

// Close ends the link and its connections and returns when all its goroutines have. It may be called twice.
func (l *Link) Close() {
	l.change(func() {
		l.closed = true
		l.endAll()
	})
	l.listener.Close()
	l.running.Wait()
}

// pause is how long the link leaves clients in the backlog when it cannot take one in, for want of file descriptors say.
const pause = 5 * time.Millisecond

// accept takes connections in until the listener is closed.
func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err == nil {
			l.begin(client.(*net.TCPConn))
			continue
		}
		if l.over() {
			return
		}
		<-time.After(pause)
	}
}

// begin serves a new connection, or resets it.
func (l *Link) begin(client *net.TCPConn) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.closed || l.refusing {
		reset(client)
		return
	}
	c, ctx := newConnection(l, client)
	l.connections[c] = struct{}{}
	c.used()
	_ = c.lose() // if it cannot, who asked for it was told
	l.running.Go(func() { c.serve(ctx) })
	l.announce()
}

func (l *Link) over() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.closed
}

// change applies a change and has every connection look at it.
func (l *Link) change(apply func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	apply()
	for c := range l.connections {
		c.wake()
	}
	l.announce()
}

// endAll resets all connections; the mutex is held.
func (l *Link) endAll() {
	for c := range l.connections {
		c.end()
	}
}

// either is the directions given, or both if none is.
func either(directions []Direction) []Direction {
	if len(directions) == 0 {
		return []Direction{ToServer, ToClient}
	}
	return directions
}
