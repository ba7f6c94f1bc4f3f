package doors

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// A play attacks targets until ctx ends. It says when it has done all that it does at least once.
type play struct {
	name string
	run  func(ctx context.Context, on []target, played func())
}

var (
	silence = play{"silence after the first byte", func(ctx context.Context, on []target, played func()) {
		keep(ctx, on, 300, false, firstByte, played)
	}}
	endless = play{"requests that never end", neverEnd}
	fields  = play{"a million tiny fields", sendFields}
	crowd   = play{"a thousand connections", func(ctx context.Context, on []target, played func()) {
		keep(ctx, on, 1000, true, greeting, played)
	}}
)

// keep has so many connections say how they begin, and nothing after that. One that the other end closes is opened anew, of all together a few
// hundred in a second: what is measured is what connections cost, and not the handshakes on processors that attackers and others share.
func keep(ctx context.Context, on []target, count int, greeted bool, beginning func(target) string, played func()) {
	var begun atomic.Int64
	var workers sync.WaitGroup
	opening, again := make(chan struct{}, 32), rate.NewLimiter(200, 1)
	for i := range count {
		workers.Go(func() {
			to := on[i%len(on)]
			for first := true; first || again.Wait(ctx) == nil; first = false {
				opening <- struct{}{}
				conn := begin(ctx, to, greeted, beginning(to))
				<-opening
				if first && begun.Add(1) == int64(count) {
					played()
				}
				if conn != nil {
					drain(ctx, conn)
				}
			}
		})
	}
	workers.Wait()
}

// begin opens a connection and says something; nil if the other end refuses it.
func begin(ctx context.Context, to target, greeted bool, beginning string) net.Conn {
	conn, err := to.connect(ctx)
	if err != nil {
		return nil
	}
	if greeted && to.tls != nil {
		secure := tls.Client(conn, to.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil
		}
		conn = secure
	}
	_, _ = io.WriteString(conn, beginning) // its end is drain's
	return conn
}

// drain returns when a connection has ended, and ends it with ctx.
func drain(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, _ = io.Copy(io.Discard, conn)
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(500 * time.Millisecond):
	}
}

// firstByte is that of a protocol.
func firstByte(to target) string {
	switch {
	case to.tls != nil:
		return "\x16"
	case to.calls:
		return "P"
	default:
		return "G"
	}
}

// greeting is a connection's, which then rests.
func greeting(to target) string {
	if to.calls {
		return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" // no settings
	}
	return "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
}

// halfRequest is a request over HTTP of which the first byte comes.
func halfRequest(to target) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n{", to.path("/sidekeeper.config.v1.ConfigService/Commit"), to.bearer, longest)
}

// path is that of a method; of listeners without methods, one that takes requests.
func (t target) path(method string) string {
	if strings.HasPrefix(t.below, "=") {
		return t.below[1:]
	}
	return t.below + method
}

// neverEnd begins a request and does not end it: over HTTP one on each of many connections, over gRPC one of each method, again and again, each
// with all its bytes but the last.
func neverEnd(ctx context.Context, on []target, played func()) {
	if !on[0].calls {
		keep(ctx, on, 300, true, halfRequest, played)
		return
	}
	copies := 4 // of each method, for each identity
	if raced {
		copies = 1 // a sidecar that looks for races is many times as slow
	}
	almost := wrapped(make([]byte, longest))[:longest]
	var begun atomic.Int64
	var workers sync.WaitGroup
	all := methods()
	for _, to := range on {
		for range copies {
			client := to.client(ctx)
			for _, method := range all {
				workers.Go(func() {
					for first := true; ctx.Err() == nil; first = false {
						body := io.MultiReader(bytes.NewReader(almost), &rest{ctx: ctx, begin: func() {
							if first && begun.Add(1) == int64(len(all)*len(on)*copies) {
								played()
							}
						}})
						post(ctx, client, to, pathOf(method), "application/grpc", body)
						pause(ctx)
					}
				})
			}
		}
	}
	overdue := time.AfterFunc(5*time.Second, played) // those that wait for their turn send nothing
	defer overdue.Stop()
	workers.Wait()
}

// A rest of a body never comes.
type rest struct {
	ctx   context.Context
	begin func()
}

func (r *rest) Read([]byte) (int, error) {
	r.begin()
	<-r.ctx.Done()
	return 0, r.ctx.Err()
}

// post calls a method, and reads what is answered for a while.
func post(ctx context.Context, client *http.Client, to target, path, contentType string, body io.Reader) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url(to.path(path)), body)
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("TE", "trailers")
	request.Header.Set("Authorization", "Bearer "+to.bearer)
	answer, err := client.Do(request)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
}

// sendFields sends requests of many tiny fields to each method, in each form that the door takes, several at once.
func sendFields(ctx context.Context, on []target, played func()) {
	atOnce := 64
	if raced {
		atOnce = 4
	}
	requests := requestsAt(on[0])
	if raced {
		requests = slices.Collect(slices.Chunk(requests, len(requests)/8+1))[0] // of any, since their order is another one each time
	}
	var next, done atomic.Int64
	var workers sync.WaitGroup
	for i := range atOnce {
		workers.Go(func() {
			to := on[i%len(on)]
			client := to.client(ctx)
			for ctx.Err() == nil {
				each := requests[int(next.Add(1)-1)%len(requests)]
				post(ctx, client, to, each.path, each.contentType, bytes.NewReader(each.body()))
				if done.Add(1) == int64(len(requests)) {
					played()
				}
			}
		})
	}
	workers.Wait()
}

// Others are answered, and what they hold is not lost, while each door is attacked in each way that is for it, and all of a sidecar's together.
func TestOthersAreAnsweredUnderEachAttack(t *testing.T) {
	var table []string
	for _, door := range doors {
		if door.night && !*night {
			continue
		}
		for _, play := range door.plays {
			of := siege{name: fmt.Sprintf("%s, %s: %s", door.flag, door.callers, play.name), stage: door.stage}
			of.add(door, play)
			t.Run(of.name, func(t *testing.T) { table = append(table, of.lay(t)) })
		}
	}
	if *night {
		of := siege{name: "serve, all together", stage: plain}
		for _, door := range doors {
			for _, play := range door.plays {
				if reflect.ValueOf(door.stage).Pointer() == reflect.ValueOf(plain).Pointer() {
					of.add(door, play)
				}
			}
		}
		t.Run(of.name, func(t *testing.T) { table = append(table, of.lay(t)) })
	}
	if *figures {
		const head = "| attack | peak | others p50 ms | p99 ms | calls | ended or unknown |\n|---|---:|---:|---:|---:|---:|\n"
		t.Logf("figures:\n%s%s", head, strings.Join(table, ""))
	}
}

// A siege is attacks at the same time.
type siege struct {
	name    string
	stage   func(*stage)
	attacks []attack
}

// An attack is one play at one door.
type attack struct {
	door door
	play play
}

func (g *siege) add(door door, play play) { g.attacks = append(g.attacks, attack{door, play}) }

// excused is the exception for something that has gone wrong; nil if there is none.
func (g *siege) excused(wrong string) *exception {
	for _, each := range g.attacks {
		if e := excused(each.door, each.play, wrong); e != nil {
			return e
		}
	}
	return nil
}

// begin returns when each attack has ended, as ctx has. It says when each has been played.
func (g *siege) begin(ctx context.Context, s *stage, played func()) {
	var all, unplayed sync.WaitGroup
	for _, each := range g.attacks {
		unplayed.Add(1)
		all.Go(func() { each.play.run(ctx, each.door.targets(s), sync.OnceFunc(unplayed.Done)) })
	}
	go func() {
		unplayed.Wait()
		played()
	}()
	all.Wait()
}

// lay plays the attacks, and returns a line of the table.
func (g *siege) lay(t *testing.T) string {
	t.Helper()
	s := newStage(t)
	g.stage(s)
	s.others = slices.DeleteFunc(s.others, func(c call) bool {
		e := g.excused(c.name)
		return e != nil && e.how == own
	})
	mayFail := func(c call) bool {
		e := g.excused(c.name)
		return e != nil && e.how == never
	}
	during, end := context.WithCancel(t.Context())
	held := s.holdLock(during, t)
	attacking, stop := context.WithCancel(during)
	played, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		g.begin(attacking, s, func() { close(played) })
	}()
	result := s.callAll(during, played, mayFail)
	peak, taken := s.attacked.peak()
	stop()
	<-over
	wrong := result.wrong
	if taken > s.limit && !raced {
		wrong = append(wrong, "the program has taken "+peak)
	}
	if !s.attacked.Running() {
		wrong = append(wrong, fmt.Sprint("the program has ended: ", s.attacked.State()))
	} else if err := held.isHeld(during); err != nil {
		wrong = append(wrong, err.Error())
	}
	end()
	for i, each := range wrong {
		switch e := g.excused(each); {
		case e != nil:
			t.Logf("%s: %s", e.why, each)
		case i < 10:
			t.Error(each)
		}
	}
	line := fmt.Sprintf("| %s | %s | %s | %s | %d | %d |", g.name, peak, result.at(50), result.at(99), len(result.times), len(wrong))
	t.Log(line)
	return line + "\n"
}
