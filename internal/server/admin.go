package server

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/ownpages"
	"github.com/sidekeeper/sidekeeper/service"
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
	lookers  chan struct{}
	stopping chan struct{} // closed when the listener is to close

	mu   sync.Mutex
	past []sheet   // of the last states; none if nobody has looked
	text []byte    // the newest state
	due  time.Time // of the next one
}

// A sheet is what was counted until one moment.
type sheet struct {
	at time.Time
	bucketCounts
}

func newAdministration(server *Server) *administration {
	return &administration{server: server, begun: time.Now(), lookers: make(chan struct{}, mostLookers), stopping: make(chan struct{})}
}

// latest is the state for all who look, taken anew every second, with latencies of the last ten, and when it is out of date.
func (a *administration) latest() (text []byte, due time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.due) {
		return a.text, a.due
	}
	now, state := sheet{time.Now(), a.server.options.Metrics.requests()}, a.state()
	if now.at.Sub(a.due) > stateEvery {
		a.past = nil
	}
	if len(a.past) > 0 {
		over := now.at.Sub(a.past[0].at)
		state.LatencyOver, state.Latency = over.Seconds(), latencies(a.past[0].bucketCounts, now.bucketCounts, over)
	}
	a.past = append(a.past, now)[max(0, len(a.past)+1-latencyPast):]
	if text, err := json.Marshal(state); err == nil {
		a.text = text
	}
	a.due = now.at.Add(stateEvery)
	return a.text, a.due
}

// state is what there is now, with latencies since the beginning.
func (a *administration) state() service.State {
	metrics := a.server.options.Metrics
	state := a.server.handlers.Snapshot()
	state.Version = ThisBuild().Version
	state.Reachable, _ = a.server.ensemble.Reachable()
	state.Counts.Connections, _ = a.server.budget.Count()
	uptime := time.Since(a.begun)
	state.Uptime, state.LatencyOver = uptime.Seconds(), uptime.Seconds()
	state.Latency = latencies(nil, metrics.requests(), uptime)
	state.Losses.Leases, state.Losses.Locks = counted(metrics.leaseLosses), counted(metrics.holdLosses)
	state.Losses.Members = counted(metrics.memberLosses)
	state.Late = metrics.lateHeartbeats()
	return state
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
	return ownpages.Only(mux, strings.HasPrefix(address, unixScheme))
}

func (a *administration) serveState(w http.ResponseWriter, _ *http.Request) {
	text, err := json.Marshal(a.state())
	if err != nil {
		http.Error(w, "the state cannot be encoded", http.StatusInternalServerError)
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
		http.Error(w, fmt.Sprintf("%d viewers already", mostLookers), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		text, due := a.latest()
		_ = out.SetWriteDeadline(time.Now().Add(readTimeout)) // supported by every connection of ours
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-time.After(time.Until(due)):
		case <-r.Context().Done():
			return
		case <-a.stopping:
			return
		}
	}
}

func profiles() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
