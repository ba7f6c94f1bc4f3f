package service

import (
	"context"
	"sync"
)

// A watchCount counts the nodes that are watched for those who watch groups and keys, so that their number is bounded.
type watchCount struct {
	most int
	tell func(sum int) // told how many they are

	mu    sync.Mutex
	nodes map[context.Context]int // by the context of who looks at them; they count until it ends
	sum   int
}

// note says how many nodes are watched in the course of a look: errWatchLimit if that makes too many.
func (w *watchCount) note(looking context.Context, nodes int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sum+nodes-w.nodes[looking] > w.most {
		return limited(errWatchLimit, "max-watched", w.most)
	}
	if _, known := w.nodes[looking]; !known {
		context.AfterFunc(looking, func() { w.forget(looking) })
	}
	w.sum += nodes - w.nodes[looking]
	w.nodes[looking] = nodes
	w.tell(w.sum)
	return nil
}

func (w *watchCount) forget(looking context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sum -= w.nodes[looking]
	delete(w.nodes, looking)
	w.tell(w.sum)
}
