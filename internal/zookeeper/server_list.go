package zookeeper

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"
)

// A serverList is which servers sessions connect to: those that were given, until the ensemble itself lists others. A server that it lists
// counts once it has proved to belong to it, and one that it lists no more is not gone back to. Servers that were given and never listed
// may be other names of those that are: they come last, or among the others while not all of those have proved it. A listed server that a
// session did not reach comes last, too, until it has proved it anew: its address may be another's by now.
type serverList struct {
	given []string
	log   *zap.Logger

	mu          sync.Mutex
	config      EnsembleConfig
	ids         []int  // of the servers that the ensemble lists; none while it is not known
	newest      uint64 // version of a list that was known
	proved      map[string]bool
	doubted     map[string]bool // of those proved, which a session did not reach since
	removed     map[string]bool // of those given
	first, rest []string        // in the order in which they are tried
	generation  int             // grows whenever first or rest changes

	doubts chan struct{} // has something to receive once a server is doubted
}

func newServerList(given []string, log *zap.Logger) *serverList {
	given = slices.Compact(slices.Sorted(slices.Values(given)))
	return &serverList{
		given: given, log: log, first: given,
		proved: make(map[string]bool), doubted: make(map[string]bool), removed: make(map[string]bool), doubts: make(chan struct{}, 1),
	}
}

func (l *serverList) current() (first, rest []string, generation int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first, l.rest, l.generation
}

// know takes in which servers there are, whether or not it is listed where clients may reach them; or that they are not known any more. A list
// that is older than one that was known changes nothing.
func (l *serverList) know(config EnsembleConfig, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !known:
		l.ids = nil
	case config.Version >= l.newest:
		l.ids, l.newest = slices.Collect(maps.Keys(config.Servers)), config.Version
	}
}

// knows says whether the ensemble lists a server of this id, which must be from 1 to 254.
func (l *serverList) knows(id byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return id >= 1 && id <= 254 && slices.Contains(l.ids, int(id))
}

// areKnown says whether the ensemble lists its servers.
func (l *serverList) areKnown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ids) > 0
}

// count is how many different servers there are.
func (l *serverList) count() int {
	first, rest, _ := l.current()
	return len(first) + len(rest)
}

// take takes a newer list, unless it is an older one.
func (l *serverList) take(config EnsembleConfig) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if config.Version < l.config.Version {
		return fmt.Errorf("version %x is older than version %x, which was seen before", config.Version, l.config.Version)
	}
	listed, before := config.Addresses(), l.config.Addresses()
	for _, server := range l.given {
		l.removed[server] = !slices.Contains(listed, server) && (l.removed[server] || slices.Contains(before, server))
	}
	for _, known := range []map[string]bool{l.proved, l.doubted} {
		maps.DeleteFunc(known, func(address string, _ bool) bool { return !slices.Contains(listed, address) })
	}
	l.config = config
	l.arrange()
	return nil
}

// prove takes in that a server belongs to the ensemble.
func (l *serverList) prove(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proved[address] = true
	delete(l.doubted, address)
	l.arrange()
}

// disprove takes in that a server belongs to another ensemble. It is used no more, even if no server that is listed is usable then.
func (l *serverList) disprove(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.proved, address)
	delete(l.doubted, address)
	l.arrange()
	if slices.Contains(l.given, address) {
		return
	}
	foreign := func(server string) bool { return server == address }
	first, rest := slices.DeleteFunc(slices.Clone(l.first), foreign), slices.DeleteFunc(slices.Clone(l.rest), foreign)
	if len(first) == 0 {
		first = slices.Clone(l.given)
	}
	l.use(first, rest)
}

// members are the servers of the ensemble at which sessions may be served, without other names for them.
func (l *serverList) members() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.first, slices.Collect(maps.Keys(l.doubted)))
}

// doubt takes in that a session did not reach a server. It has to prove anew that it belongs to the ensemble, unless it was given.
func (l *serverList) doubt(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.proved[address] || l.doubted[address] || slices.Contains(l.given, address) {
		return
	}
	l.doubted[address] = true
	l.arrange()
	select {
	case l.doubts <- struct{}{}:
	default:
	}
}

// usable are the addresses of a server at which it is known to belong to the ensemble. The lock is held.
func (l *serverList) usable(addresses []string) (usable []string) {
	for _, address := range addresses {
		if l.proved[address] && !l.doubted[address] || slices.Contains(l.given, address) {
			usable = append(usable, address)
		}
	}
	return usable
}

// unproved are the addresses that are not usable, of all servers or of those that have none which is.
func (l *serverList) unproved(all bool) (unproved []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(l.config.Servers)) {
		addresses := l.config.Servers[id]
		usable := l.usable(addresses)
		if !all && len(usable) > 0 {
			continue
		}
		for _, address := range addresses {
			if !slices.Contains(usable, address) && !slices.Contains(unproved, address) {
				unproved = append(unproved, address)
			}
		}
	}
	return unproved
}

// arrange makes first and rest anew; they stay as they are while no server that is listed is usable. The lock is held.
func (l *serverList) arrange() {
	var first, rest []string
	complete := true
	for _, addresses := range l.config.Servers {
		usable := l.usable(addresses)
		first, complete = append(first, usable...), complete && len(usable) > 0
	}
	doubted := slices.Sorted(maps.Keys(l.doubted))
	if len(first) == 0 {
		first, doubted = doubted, nil // there are no better ones
	}
	if len(first) == 0 {
		return
	}
	for _, server := range l.given {
		switch {
		case l.removed[server] || slices.Contains(first, server):
		case complete:
			rest = append(rest, server)
		default:
			first = append(first, server)
		}
	}
	slices.Sort(first)
	l.use(slices.Compact(first), append(rest, doubted...))
}

// use takes first and rest, if they are others than before. The lock is held.
func (l *serverList) use(first, rest []string) {
	if !slices.Equal(first, l.first) || !slices.Equal(rest, l.rest) {
		l.first, l.rest = first, rest
		l.generation++
		l.log.Info("list of servers changed", zap.Strings("servers", first), zap.Strings("last", rest))
	}
}
