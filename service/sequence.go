package service

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"

	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// mostNumbers is how many one call may ask for.
const mostNumbers = 1000000

// sequenceService answers sidekeeper.sequence.v1.SequenceService.
type sequenceService struct {
	sequencev1.UnsafeSequenceServiceServer

	services  *Services
	directory directory
}

func (d directory) sequence(n name) recipes.Sequence {
	return recipes.Sequence{Path: path.Join(d.root, strings.ReplaceAll(n.text, "/", slash))}
}

// find parses the name of a sequence. Nothing new begins while the sidecar stops.
func (s *sequenceService) find(text string) (recipes.Sequence, error) {
	asked, err := parseName("name", text)
	if err == nil && s.services.drain.hasBegun() {
		err = errStopping
	}
	return s.directory.sequence(asked), err
}

func (s *sequenceService) Create(ctx context.Context, request *sequencev1.CreateRequest) (*sequencev1.CreateResponse, error) {
	sequence, err := s.find(request.GetName())
	if err != nil {
		return nil, err
	}
	first := int64(1)
	if request.First != nil {
		first = request.GetFirst()
	}
	if first == math.MinInt64 {
		return nil, invalid("first", fmt.Sprint(first), "from −2^63+1 to 2^63−1")
	}
	made, err := sequence.Create(ctx, s.services.ensemble, first)
	s.services.audit.wrote(caller.Of(ctx), "sequence", "create", request.GetName(), err)
	if err != nil {
		return nil, err
	}
	return &sequencev1.CreateResponse{Incarnation: made.Incarnation}, nil
}

func (s *sequenceService) Next(ctx context.Context, request *sequencev1.NextRequest) (*sequencev1.NextResponse, error) {
	asked, err := parseName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	count := int64(1)
	if request.Count != nil {
		count = int64(request.GetCount())
	}
	if count < 1 || count > mostNumbers {
		return nil, invalid("count", fmt.Sprint(count), fmt.Sprintf("from 1 to %d", mostNumbers))
	}
	relaxed, err := parseOrdering(request.GetOrdering())
	if err != nil {
		return nil, err
	}
	if relaxed && len(request.GetGuards()) > 0 {
		return nil, invalid("ordering", "RELAXED", "STRICT with guards: RELAXED numbers were reserved before")
	}
	guards, err := s.services.parseGuards(ctx, request.GetGuards())
	if err != nil {
		return nil, err
	}
	numbers, err := s.services.issuers.next(ctx, asked, guards, count, relaxed)
	err = guards.meaning(ctx, err)
	if err != nil {
		return nil, err
	}
	return &sequencev1.NextResponse{First: numbers.First, Last: numbers.Last, Incarnation: numbers.Incarnation}, nil
}

func parseOrdering(value sequencev1.Ordering) (relaxed bool, err error) {
	switch value {
	case sequencev1.Ordering_ORDERING_UNSPECIFIED, sequencev1.Ordering_ORDERING_STRICT:
		return false, nil
	case sequencev1.Ordering_ORDERING_RELAXED:
		return true, nil
	}
	return false, invalid("ordering", value.String(), "STRICT or RELAXED")
}

func (s *sequenceService) Get(ctx context.Context, request *sequencev1.GetRequest) (*sequencev1.GetResponse, error) {
	sequence, err := s.find(request.GetName())
	if err != nil {
		return nil, err
	}
	count, err := sequence.Read(ctx, s.services.ensemble)
	if err != nil {
		return nil, err
	}
	return &sequencev1.GetResponse{LastIssued: count.Last, Incarnation: count.Incarnation}, nil
}

func (s *sequenceService) AdvanceTo(
	ctx context.Context, request *sequencev1.AdvanceToRequest,
) (*sequencev1.AdvanceToResponse, error) {
	sequence, err := s.find(request.GetName())
	if err != nil {
		return nil, err
	}
	if request.LastIssued == nil {
		return nil, invalid("last_issued", "", "a number, the largest that is in use")
	}
	guards, err := s.services.parseGuards(ctx, request.GetGuards())
	if err != nil {
		return nil, err
	}
	count, err := sequence.AdvanceTo(ctx, guards.over(s.services.ensemble), request.GetLastIssued())
	err = guards.meaning(ctx, err)
	s.services.audit.advanced(caller.Of(ctx), guards, request.GetName(), request.GetLastIssued(), err)
	if err != nil {
		return nil, err
	}
	return &sequencev1.AdvanceToResponse{LastIssued: count.Last, Incarnation: count.Incarnation}, nil
}

func (s *sequenceService) Delete(ctx context.Context, request *sequencev1.DeleteRequest) (*sequencev1.DeleteResponse, error) {
	sequence, err := s.find(request.GetName())
	if err != nil {
		return nil, err
	}
	err = sequence.Delete(ctx, s.services.ensemble)
	s.services.audit.wrote(caller.Of(ctx), "sequence", "delete", request.GetName(), err)
	if err != nil {
		return nil, err
	}
	return &sequencev1.DeleteResponse{}, nil
}

func (s *sequenceService) List(
	ctx context.Context, request *sequencev1.ListRequest,
) (response *sequencev1.ListResponse, err error) {
	response = &sequencev1.ListResponse{}
	response.Sequences, response.NextPageToken, err = listPage(ctx, s.services.ensemble, s.directory, request, s.listed)
	return response, err
}

// listed leaves out a sequence that has gone since the names were listed.
func (s *sequenceService) listed(ctx context.Context, found name) (*sequencev1.Sequence, error) {
	count, err := s.directory.sequence(found).Peek(ctx, s.services.ensemble)
	switch {
	case errors.Is(err, recipes.ErrNoSequence):
		return nil, nil
	case err != nil && !errors.Is(err, recipes.ErrMalformed):
		return nil, err
	}
	return &sequencev1.Sequence{
		Name: found.text, LastIssued: count.Last, Incarnation: count.Incarnation, Malformed: err != nil,
	}, nil
}
