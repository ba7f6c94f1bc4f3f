package sidekeeper

import (
	"context"
	"iter"

	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// A Sequence hands out numbers, each once. It is safe for use by many goroutines at once, and costs nothing to make.
type Sequence struct {
	name     string
	ordering sequencev1.Ordering
	stub     sequencev1.SequenceServiceClient
	client   *Client
}

// Sequence gives access to the sequence with this name, which need not exist. A number it hands out is larger than all that
// had been handed out, through whichever sidecar, when it was asked for.
func (c *Client) Sequence(name string) *Sequence {
	return &Sequence{name: name, stub: sequencev1.NewSequenceServiceClient(c.connection), client: c}
}

// Relaxed is the same sequence for callers to whom the order of numbers does not matter: they are taken from a stock that
// the sidecar keeps, which is faster. Those in stock are lost when the sidecar ends.
func (s *Sequence) Relaxed() *Sequence {
	return &Sequence{name: s.name, ordering: sequencev1.Ordering_ORDERING_RELAXED, stub: s.stub, client: s.client}
}

// Numbers are all from First to Last, both included.
type Numbers struct {
	First, Last int64
	Incarnation int64 // of the sequence: the numbers of one incarnation are unique
}

// All goes through the numbers.
func (n Numbers) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for number := n.First; number <= n.Last && yield(number); number++ {
			if number == n.Last { // perhaps the largest there is
				return
			}
		}
	}
}

// Next hands out a number. After an error another attempt is safe: at worst it skips numbers. ErrSequenceNotFound,
// ErrSequenceExhausted, ErrSequenceMalformed.
func (s *Sequence) Next(ctx context.Context) (int64, error) {
	numbers, err := s.next(ctx, nil)
	return numbers.First, err
}

// NextRange hands out count numbers at once, 1 to 1,000,000. Errors as of Next.
func (s *Sequence) NextRange(ctx context.Context, count int32) (Numbers, error) {
	return s.next(ctx, &count)
}

// Each goes through numbers without an end, which are unique and in no certain order, of which so many are taken at a time: ahead, 1 to
// 1,000,000. Those taken and not used are never handed out again. An error, as of Next, ends it.
func (s *Sequence) Each(ctx context.Context, ahead int32) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for {
			numbers, err := s.Relaxed().NextRange(ctx, ahead)
			if err != nil {
				yield(0, err)
				return
			}
			for number := range numbers.All() {
				if !yield(number, nil) {
					return
				}
			}
		}
	}
}

func (s *Sequence) next(ctx context.Context, count *int32) (Numbers, error) {
	request := &sequencev1.NextRequest{Name: s.name, Count: count, Ordering: s.ordering}
	if s.ordering != sequencev1.Ordering_ORDERING_RELAXED {
		request.Guards = s.client.guards(ctx)
	}
	reply, err := s.stub.Next(ctx, request)
	if err != nil {
		return Numbers{}, fromStatus(err)
	}
	return Numbers{First: reply.GetFirst(), Last: reply.GetLast(), Incarnation: reply.GetIncarnation()}, nil
}

// A SequenceState is how far one incarnation of a sequence has come.
type SequenceState struct {
	LastIssued  int64 // the last number that was handed out or reserved
	Incarnation int64 // another one tells that the sequence was deleted and made anew
}

// Create makes the sequence, whose first number will be first, and returns its incarnation. ErrSequenceExists; with
// ErrOutcomeUnknown it may have been made.
func (s *Sequence) Create(ctx context.Context, first int64) (incarnation int64, err error) {
	reply, err := s.stub.Create(ctx, &sequencev1.CreateRequest{Name: s.name, First: new(first)})
	return reply.GetIncarnation(), fromStatus(err)
}

// Get says how far the sequence is. Every number that was handed out before is counted. ErrSequenceNotFound,
// ErrSequenceMalformed.
func (s *Sequence) Get(ctx context.Context) (SequenceState, error) {
	reply, err := s.stub.Get(ctx, &sequencev1.GetRequest{Name: s.name})
	return SequenceState{reply.GetLastIssued(), reply.GetIncarnation()}, fromStatus(err)
}

// AdvanceTo has the sequence go on behind lastIssued, for operators. One that is there or further stays as it is. Errors
// as of Get; after ErrOutcomeUnknown asking again is safe.
func (s *Sequence) AdvanceTo(ctx context.Context, lastIssued int64) (SequenceState, error) {
	reply, err := s.stub.AdvanceTo(ctx, &sequencev1.AdvanceToRequest{Name: s.name, LastIssued: new(lastIssued)})
	return SequenceState{reply.GetLastIssued(), reply.GetIncarnation()}, fromStatus(err)
}

// Delete removes the sequence. ErrSequenceNotFound, ErrSequenceMalformed, ErrNameIsDirectory if others have put things below
// it; with ErrOutcomeUnknown it may be gone.
func (s *Sequence) Delete(ctx context.Context) error {
	_, err := s.stub.Delete(ctx, &sequencev1.DeleteRequest{Name: s.name})
	return fromStatus(err)
}

// A SequenceEntry is one sequence in a list.
type SequenceEntry struct {
	Name        string
	LastIssued  int64 // the last number that was handed out or reserved; 0 if malformed
	Incarnation int64
	Malformed   bool // what is stored under the name is no sequence: nothing can be handed out
}

// Sequences shows the sequences, in the order of names; all, or those below a prefix of whole segments. An error ends it.
func (c *Client) Sequences(ctx context.Context, prefix string) iter.Seq2[*SequenceEntry, error] {
	stub := sequencev1.NewSequenceServiceClient(c.connection)
	return pages(sequenceEntryFrom, func(token string) ([]*sequencev1.Sequence, string, error) {
		reply, err := stub.List(ctx, &sequencev1.ListRequest{Prefix: prefix, PageSize: pageSize, PageToken: token})
		return reply.GetSequences(), reply.GetNextPageToken(), err
	})
}

func sequenceEntryFrom(wire *sequencev1.Sequence) *SequenceEntry {
	return &SequenceEntry{
		Name: wire.GetName(), LastIssued: wire.GetLastIssued(), Incarnation: wire.GetIncarnation(), Malformed: wire.GetMalformed(),
	}
}
