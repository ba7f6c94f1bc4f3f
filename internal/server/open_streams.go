package server

import "sync"

// openStreams are those that a policy has let in, by what they asked for, so that a new policy judges them again.
type openStreams struct {
	mu   sync.Mutex
	open map[*admission]question
}

// enter has a stream judged by each policy that comes, from now on.
func (o *openStreams) enter(stream *admission, asked question) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[*admission]question{}
	}
	o.open[stream] = asked
}

func (o *openStreams) leave(stream *admission) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, stream)
}

// judge withdraws the permission of each stream that may not be open any more.
func (o *openStreams) judge(authorizer authorizer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for stream := range o.open {
		if err := authorizer.judge(o.open[stream]); err != nil {
			delete(o.open, stream)
			stream.permission.Withdraw(err)
		}
	}
}
