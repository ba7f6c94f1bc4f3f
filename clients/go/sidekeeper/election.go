package sidekeeper

import (
	"context"
	"iter"
	"time"

	"google.golang.org/grpc"

	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
)

// A Leader is who leads an election.
type Leader struct {
	Candidate      string            // as given to Campaign; of one that is foreign, what it wrote about itself, if that is text
	Value          string            // as given to Campaign, or to the latest Proclaim
	Term           Ticket            // its fencing token numbers the term
	Metadata       map[string]string // as given to Campaign
	Identity       string            // as the sidecar that made it verified it; empty where callers are not told apart
	Foreign        bool              // a client of the ensemble that is not Sidekeeper's
	YieldRequested bool              // it has been asked to yield
}

// A Candidate waits to lead an election. Its fields are as a Leader's.
type Candidate struct {
	Candidate, Value string
	Metadata         map[string]string
	Identity         string
	Foreign          bool
	Age              time.Duration // how long it has waited, by the ensemble's clock
}

// An ElectionView is who leads, and who would.
type ElectionView struct {
	Leader            *Leader      // nil if there is none
	Candidates        []*Candidate // in the order of their turn
	CandidatesOmitted int          // how many were left out because there are too many for one message
}

// An Observation is what is known of an election.
type Observation struct {
	Leader *Leader // nil if there is none
	Stale  bool    // another candidate may lead: there is no contact with the ensemble, or with the sidecar

	said   bool
	newest int64 // term that was seen
}

func leaderFrom(wire *electionv1.Leader) *Leader {
	if wire == nil {
		return nil
	}
	return &Leader{
		Candidate: wire.GetCandidate(), Value: wire.GetValue(), Term: ticketFrom(wire.GetTicket()), Metadata: wire.GetMetadata(),
		Identity: wire.GetIdentity(), Foreign: wire.GetForeign(), YieldRequested: wire.GetYieldRequested(),
	}
}

func candidateFrom(wire *electionv1.Candidate) *Candidate {
	return &Candidate{
		Candidate: wire.GetCandidate(), Value: wire.GetValue(), Metadata: wire.GetMetadata(), Identity: wire.GetIdentity(),
		Foreign: wire.GetForeign(), Age: wire.GetAge().AsDuration(),
	}
}

func ticketFrom(wire *holdv1.Ticket) Ticket { return Ticket{wire.GetLock(), wire.GetFencingToken()} }

func (c *Client) elections() electionv1.ElectionServiceClient {
	return electionv1.NewElectionServiceClient(c.connection)
}

// GetElection shows who leads and who else would, in order.
func (c *Client) GetElection(ctx context.Context, name string) (*ElectionView, error) {
	reply, err := c.elections().Get(ctx, &electionv1.GetRequest{Name: name})
	if err != nil {
		return nil, fromStatus(err)
	}
	return &ElectionView{
		leaderFrom(reply.GetLeader()), each(reply.GetCandidates(), candidateFrom), int(reply.GetCandidatesOmitted()),
	}, nil
}

// TransferOptions say how to hand leadership over.
type TransferOptions struct {
	Reason string         // for the leader
	Grace  *time.Duration // after which its term is ended by force: for operators; nil, never
}

// TransferLeadership asks the leader to yield to a candidate, after the candidates ahead of that one have stepped back. Observe shows when it
// has. ErrCandidateNotFound, ErrForeignCandidate.
func (c *Client) TransferLeadership(ctx context.Context, name, to string, options TransferOptions) error {
	_, err := c.elections().Transfer(ctx, &electionv1.TransferRequest{
		Name: name, To: to, Reason: options.Reason, Grace: optionalDuration(options.Grace),
	})
	return fromStatus(err)
}

// Observe says who leads an election, at once and whenever that or the leader's value has changed, also across restarts of the sidecar: until
// it is back, what was said last is Stale. After a term, an earlier one is never said. It ends with an error, also when ctx ends.
func (c *Client) Observe(ctx context.Context, name string) iter.Seq2[*Observation, error] {
	var last Observation
	news := func(wire *electionv1.WatchResponse) (*Observation, bool) {
		next := Observation{Leader: leaderFrom(wire.GetLeader())}
		switch {
		case wire.GetEvent() == nil:
			return nil, false
		case wire.GetStale() != nil, next.term() != 0 && next.term() < last.newest:
			next = Observation{Leader: last.Leader, Stale: true}
		}
		next.said, next.newest = true, max(last.newest, next.term())
		last = next
		return &next, true
	}
	open := func(ctx context.Context) (grpc.ServerStreamingClient[electionv1.WatchResponse], error) {
		return c.elections().Watch(ctx, &electionv1.WatchRequest{Name: name, Keepalive: keepaliveEvery})
	}
	watch := func() iter.Seq2[*Observation, error] {
		return staleAtEnd(messages(ctx, c.clock, open, news, unheard), &last)
	}
	return reopened(ctx, watch, func() {})
}

// staleAtEnd says before the end of a watch that what it said last is stale.
func staleAtEnd(watch iter.Seq2[*Observation, error], last *Observation) iter.Seq2[*Observation, error] {
	return func(yield func(*Observation, error) bool) {
		for observed, err := range watch {
			if err != nil && last.said && !last.Stale {
				last.Stale = true
				if !yield(new(*last), nil) {
					return
				}
			}
			if !yield(observed, err) {
				return
			}
		}
	}
}

// term is the number of the leader's term; 0 if there is no leader.
func (o *Observation) term() int64 {
	if o.Leader == nil {
		return 0
	}
	return o.Leader.Term.FencingToken
}
