package service

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// panel is the page at / of the admin listener. It stands on nothing else.
//
//go:embed panel
var panel embed.FS

const (
	stateEvery  = time.Second      // how often a state is taken while somebody looks
	latencyPast = 10               // of these states, for latencies
	readTimeout = 10 * time.Second // until a looker that does not read is given up
	mostLookers = 32
)

// An administration answers on the admin listener: the page, what it shows as JSON, once (/state) or as it changes
// (/events), and profiles. While nobody looks, nothing is done.
type administration struct {
	server   *Server
	begun    time.Time
	states   *broadcasts[struct{}, []byte]
	lookers  chan struct{}
	stopping chan struct{} // closed when the listener is to close
}

func newAdministration(server *Server) *administration {
	a := &administration{server: server, begun: time.Now(), lookers: make(chan struct{}, mostLookers), stopping: make(chan struct{})}
	a.states = newBroadcastsOf(server.ensemble, a.look)
	return a
}

// look takes a state every second, with latencies of the last ten.
func (a *administration) look(context.Context, struct{}) looking[[]byte] {
	type sheet struct {
		at time.Time
		tallySheet
	}
	past := []sheet{{time.Now(), a.server.options.Metrics.requests()}}
	return func(context.Context) ([]byte, recipes.Changes, error) {
		now := sheet{time.Now(), a.server.options.Metrics.requests()}
		state := a.state()
		if len(past) > 1 || now.at.Sub(past[0].at) >= stateEvery {
			state.LatencyOver = now.at.Sub(past[0].at).Seconds()
			state.Latency = latencies(past[0].tallySheet, now.tallySheet, now.at.Sub(past[0].at))
		}
		past = append(past, now)[max(0, len(past)+1-latencyPast):]
		text, err := json.Marshal(state)
		return text, recipes.Changes{after(stateEvery)}, err
	}
}

// state is what there is now, with latencies since the beginning.
func (a *administration) state() State {
	metrics := a.server.options.Metrics
	state := a.server.handlers.Stock()
	state.Version = version()
	state.Reachable, _ = a.server.ensemble.Reachable()
	state.Counts.Connections, _ = a.server.keeper.count()
	uptime := time.Since(a.begun)
	state.Uptime, state.LatencyOver = uptime.Seconds(), uptime.Seconds()
	state.Latency = latencies(nil, metrics.requests(), uptime)
	state.Losses.Leases, state.Losses.Locks = counted(metrics.leaseLosses), counted(metrics.holdLosses)
	state.Losses.Members = counted(metrics.memberLosses)
	state.Late = metrics.lateHeartbeats()
	return state
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

// handler serves the administration. Over TCP it answers only who asks for this machine by a name of its own.
func (a *administration) handler(address string) http.Handler {
	mux := profiles()
	mux.HandleFunc("GET /state", a.serveState)
	mux.HandleFunc("GET /events", a.serveEvents)
	files, err := fs.Sub(panel, "panel")
	if err != nil {
		panic(err) // it is part of the program
	}
	mux.Handle("/", http.FileServerFS(files))
	return ownPagesOnly(mux, strings.HasPrefix(address, unixScheme))
}

func (a *administration) serveState(w http.ResponseWriter, _ *http.Request) {
	text, err := json.Marshal(a.state())
	if err != nil {
		http.Error(w, "the state cannot be told", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // who asked has gone if this fails
}

// serveEvents sends each state that its reader is in time for, until the reader has gone.
func (a *administration) serveEvents(w http.ResponseWriter, r *http.Request) {
	select {
	case a.lookers <- struct{}{}:
		defer func() { <-a.lookers }()
	default:
		http.Error(w, fmt.Sprintf("%d look already", mostLookers), http.StatusServiceUnavailable)
		return
	}
	board := a.states.watch(struct{}{})
	defer board.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		shown, changed := board.now()
		if shown.seen {
			_ = out.SetWriteDeadline(time.Now().Add(readTimeout)) // supported by every connection of ours
			_, err := fmt.Fprintf(w, "data: %s\n\n", shown.view)
			if err != nil || out.Flush() != nil {
				return
			}
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-a.stopping:
			return
		}
	}
}

// ownPagesOnly keeps out web pages from elsewhere: those that had a name of theirs point here (the Host tells), and those that
// make a browser ask. What is served runs no script but its own.
func ownPagesOnly(handler http.Handler, isSocket bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		switch {
		case !isSocket && !isLoopback(hostname(r.Host)):
			http.Error(w, "ask for localhost or a loopback address", http.StatusMisdirectedRequest)
			return
		case site != "" && site != "same-origin" && site != "none":
			http.Error(w, "not for other pages", http.StatusForbidden)
			return
		}
		header := w.Header()
		header.Set("Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "+
				"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		handler.ServeHTTP(w, r)
	})
}

// hostname is the host of a Host header, without its port.
func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}
