// It looks inside: what is remembered of sequences shows in no answer.

package service

import (
	"fmt"
	"testing"
	"time"

	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestOnlySequencesThatExistAndAreUsedAreRemembered(t *testing.T) {
	t.Parallel()
	memory := standin.New(standin.Options{Tick: time.Second})
	defer memory.Close()
	services := New(Options{}, memoryEnsemble{memory.NewReader()})
	sequences := &sequenceService{services: services, directory: directory{root: "/sidekeeper/sequences"}}
	next := func(request *sequencev1.NextRequest) string {
		response, err := sequences.Next(t.Context(), request)
		if err != nil {
			return ReasonOf(err)
		}
		return fmt.Sprintf("%d-%d", response.GetFirst(), response.GetLast())
	}
	makes := func(sequence string) {
		if _, err := sequences.Create(t.Context(), &sequencev1.CreateRequest{Name: sequence}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 100 {
		next(&sequencev1.NextRequest{Name: fmt.Sprint("missing", n), Ordering: sequencev1.Ordering(n % 3)})
	}
	makes("orders")
	makes("idle")
	next(&sequencev1.NextRequest{Name: "orders"})
	next(&sequencev1.NextRequest{Name: "idle", Ordering: sequencev1.Ordering_ORDERING_RELAXED})
	i := services.issuers
	same(t, "remembered", len(i.known), 2)
	i.mu.Lock()
	i.known[issuing{sequence: name{"idle"}}].used = time.Now().Add(-issuerIdle - time.Second)
	i.sweep(time.Now())
	i.mu.Unlock()
	same(t, "idle", SequenceUsers(services, "idle"), -1)
	same(t, "used", SequenceUsers(services, "orders"), 0)
	for n := range mostIssuers {
		sequence := name{fmt.Sprint("many", n)}
		i.enter(sequence, guards{})
		i.leave(issuing{sequence: sequence}, nil)
	}
	for n := range 10 {
		sequence, under := name{fmt.Sprint("guarded", n)}, guards{all: []guard{{}}}
		i.enter(sequence, under)
		i.leave(issuing{sequence, under.key()}, nil)
	}
	if len(i.known) > mostIssuers {
		t.Errorf("%d are remembered", len(i.known))
	}
	same(t, "forgotten reserve", next(&sequencev1.NextRequest{Name: "idle", Ordering: sequencev1.Ordering_ORDERING_RELAXED}), "34-34")
}
