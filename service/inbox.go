package service

import "sync"

// An inbox has what happens to something done one after the other. The goroutine that brings the first event does what follows from it, and from
// what others bring meanwhile. Nothing of that may wait.
type inbox struct {
	to interface{ finish(why error) } // which a panic ends

	mu    sync.Mutex
	busy  bool
	later []func()
}

// do does something, or leaves it to the goroutine that is at it.
func (i *inbox) do(what func()) {
	i.mu.Lock()
	if i.busy {
		i.later = append(i.later, what)
		i.mu.Unlock()
		return
	}
	i.busy = true
	i.mu.Unlock()
	for what != nil {
		if err := tried(what); err != nil {
			_ = tried(func() { i.to.finish(err) })
		}
		what = i.next()
	}
}

func tried(what func()) (err error) {
	defer contain(&err)
	what()
	return nil
}

func (i *inbox) next() (what func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.later) == 0 {
		i.busy, i.later = false, nil
		return nil
	}
	what, i.later = i.later[0], i.later[1:]
	return what
}
