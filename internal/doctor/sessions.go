package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A Session is one of the ensemble's sessions, as its servers tell of it.
type Session struct {
	ID            string   `json:"id"`     // in hexadecimal, as servers log it
	Server        string   `json:"server"` // that it is connected to; empty if to none that answers
	Client        string   `json:"client"` // the address of its client; empty likewise
	TimeoutMillis int      `json:"timeoutMillis"`
	Nodes         []string `json:"nodes"`  // that go with it, such as places of locks and members
	Owners        []string `json:"owners"` // whom those below the root name as their owners
}

// Watches are those on one node.
type Watches struct {
	Path     string    `json:"path"`
	Sessions []Session `json:"sessions"` // that watch it; without their nodes
}

var (
	connectionLine = regexp.MustCompile(`^ /(\S+?)\[\d+\]\(.*\bsid=0x([0-9a-f]+),.*\bto=(\d+)`)
	sessionLine    = regexp.MustCompile(`^\s*0x([0-9a-f]+)(?:\t(\d+)ms|:?)\s*$`)
)

// Sessions asks the servers for the sessions of the ensemble, whoever's they are. unheard says which server did not answer what; an error
// means that none did.
func Sessions(ctx context.Context, ensemble Ensemble, settings Settings) (all []Session, unheard []string, _ error) {
	return (&sessions{ensemble: ensemble, known: map[string]*Session{}, compare: strings.Compare}).all(ctx, settings)
}

// WatchesOf asks the servers who watches which node, the most watched first.
func WatchesOf(ctx context.Context, ensemble Ensemble, settings Settings) (all []Watches, unheard []string, _ error) {
	s := &sessions{ensemble: ensemble, known: map[string]*Session{}}
	watchers := map[string]map[string]bool{}
	for _, server := range settings.Servers {
		if s.ask(ctx, server, "cons", func(answer string) { s.connections(server, answer) }) {
			s.ask(ctx, server, "wchp", func(answer string) { s.watches(answer, watchers) })
		}
	}
	if s.heard == 0 {
		return nil, nil, s.silence()
	}
	for _, path := range slices.Sorted(maps.Keys(watchers)) {
		on := Watches{Path: path}
		for _, id := range slices.Sorted(maps.Keys(watchers[path])) {
			on.Sessions = append(on.Sessions, *s.session(id))
		}
		all = append(all, on)
	}
	slices.SortStableFunc(all, func(a, b Watches) int { return cmp.Compare(len(b.Sessions), len(a.Sessions)) })
	return all, s.unheard, nil
}

// sessions are what the servers have told so far.
type sessions struct {
	ensemble Ensemble
	known    map[string]*Session
	compare  func(a, b string) int // of nodes and of owners
	heard    int                   // answers
	unheard  []string
}

// all asks each server.
func (s *sessions) all(ctx context.Context, settings Settings) (all []Session, unheard []string, _ error) {
	for _, server := range settings.Servers {
		if s.ask(ctx, server, "cons", func(answer string) { s.connections(server, answer) }) {
			s.ask(ctx, server, "dump", s.dump)
		}
	}
	if s.heard == 0 {
		return nil, nil, s.silence()
	}
	for _, session := range s.known {
		session.Nodes = s.distinct(session.Nodes)
		all = append(all, *session)
	}
	slices.SortFunc(all, func(a, b Session) int {
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.ID, b.ID))
	})
	_ = recipes.EachOf(len(all), func(i int) error { s.owners(ctx, &all[i], settings.Root); return nil })
	return all, s.unheard, nil
}

// distinct sorts the words, and leaves each of them there once. Looking for each among all others would take hours for a million nodes.
func (s *sessions) distinct(words []string) []string {
	slices.SortFunc(words, s.compare)
	return slices.CompactFunc(words, func(a, b string) bool { return s.compare(a, b) == 0 })
}

// silence says why nobody was heard.
func (s *sessions) silence() error {
	return fmt.Errorf("no server tells of its sessions: %s", strings.Join(s.unheard, "; "))
}

// ask asks a server, and says whether it answers at all.
func (s *sessions) ask(ctx context.Context, server, word string, read func(answer string)) (answers bool) {
	answer, err := s.ensemble.Ask(ctx, server, word)
	switch {
	case errors.Is(err, zookeeper.ErrSilent):
		s.unheard = append(s.unheard, fmt.Sprintf("%s does not answer %#q: allow it in 4lw.commands.whitelist", server, word))
	case err != nil:
		s.unheard = append(s.unheard, fmt.Sprintf("%s does not answer: %v", server, err))
		return false
	default:
		s.heard++
		read(answer)
	}
	return true
}

func (s *sessions) session(id string) *Session {
	if s.known[id] == nil {
		s.known[id] = &Session{ID: "0x" + id, Nodes: []string{}, Owners: []string{}}
	}
	return s.known[id]
}

// connections reads the connections of one server. One without a session has none yet, or is that which asks.
func (s *sessions) connections(server, answer string) {
	for line := range strings.Lines(answer) {
		if match := connectionLine.FindStringSubmatch(line); len(match) > 3 && match[2] != "0" {
			session := s.session(match[2])
			session.Server, session.Client = server, match[1]
			session.TimeoutMillis, _ = strconv.Atoi(match[3])
		}
	}
}

// dump reads the sessions that a server tracks, and the nodes that go with sessions, which every server knows. The paths of each stand behind a
// tab in the lines that follow it.
func (s *sessions) dump(answer string) {
	var last *Session
	for line := range strings.Lines(answer) {
		path, isPath := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t/")
		match := sessionLine.FindStringSubmatch(line)
		switch {
		case isPath && last != nil:
			last.Nodes = append(last.Nodes, "/"+path)
		case match != nil:
			last = s.session(match[1])
			if match[2] != "" {
				last.TimeoutMillis, _ = strconv.Atoi(match[2])
			}
		}
	}
}

// watches reads who watches what: below each path stand the sessions.
func (s *sessions) watches(answer string, watchers map[string]map[string]bool) {
	path := ""
	for line := range strings.Lines(answer) {
		line = strings.TrimSuffix(line, "\n")
		match := sessionLine.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "/"):
			path = line
			if watchers[path] == nil {
				watchers[path] = map[string]bool{}
			}
		case match != nil && path != "":
			watchers[path][match[1]] = true
		}
	}
}

// owners reads whom a session's nodes name, of those that lie below the root.
func (s *sessions) owners(ctx context.Context, session *Session, root string) {
	for _, path := range session.Nodes {
		if !strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/") {
			continue
		}
		node, err := s.ensemble.Get(ctx, path)
		var told struct {
			Owner string `json:"owner"`
		}
		if err == nil && json.Unmarshal(node.Data, &told) == nil && told.Owner != "" {
			session.Owners = append(session.Owners, told.Owner)
		}
	}
	session.Owners = s.distinct(session.Owners)
}
