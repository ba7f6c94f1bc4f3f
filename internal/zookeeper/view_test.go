package zookeeper

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
)

const somePlace = "/sidekeeper/locks/a/_c_6f1c2a9e-0b1d-4c3e-8f5a-7b9c0d1e2f3a-lock-0000000007"

// Only the event of a watch that stood on the node says that it was deleted for good.
func TestADeletionIsRememberedOnlyIfItCanBeReliedOn(t *testing.T) {
	for name, test := range map[string]struct {
		event zk.EventType
		path  string
		armed func(v *view, path string)
		want  bool
	}{
		"the event of a deletion":       {zk.EventNodeDeleted, somePlace, found, true},
		"other data":                    {zk.EventNodeDataChanged, somePlace, found, false},
		"the end of the watch":          {zk.EventNotWatching, somePlace, found, false},
		"a node that was not watched":   {zk.EventNodeDeleted, somePlace, func(*view, string) {}, false},
		"a read that is not answered":   {zk.EventNodeDeleted, somePlace, func(v *view, path string) { v.share(v.nodes, path) }, false},
		"a read that found no node":     {zk.EventNodeDeleted, somePlace, failed, false},
		"a name that may be used again": {zk.EventNodeDeleted, "/sidekeeper/locks/a/lock-0000000007", found, false},
	} {
		s := &Session{client: &Client{}}
		s.client.reader = &reader{view: newView(s), changed: make(chan struct{})}
		v := s.client.reader.view
		test.armed(v, test.path)
		v.fire(test.event, test.path)
		if got := s.SawDeleted(test.path); got != test.want {
			t.Errorf("%s: deleted %v, want %v", name, got, test.want)
		}
	}
}

func found(v *view, path string) {
	w, _ := v.share(v.nodes, path)
	v.settle(v.nodes, path, w, true)
}

func failed(v *view, path string) {
	w, _ := v.share(v.nodes, path)
	w.err = errors.New("no node")
	close(w.ready) // the event comes before settle has dropped it
}

func TestDeletionsAreForgottenWithTheirConnectionAndWhenThereAreTooMany(t *testing.T) {
	s := &Session{client: &Client{}}
	r := &reader{view: newView(s), changed: make(chan struct{})}
	s.client.reader = r
	for i := range 2 * mostDeleted {
		path := fmt.Sprintf("%s%d", somePlace[:len(somePlace)-10], 1000000000+i)
		found(r.view, path)
		r.view.fire(zk.EventNodeDeleted, path)
		if len(r.view.deleted) > mostDeleted || !s.SawDeleted(path) {
			t.Fatalf("%d remembered, the newest among them: %v", len(r.view.deleted), s.SawDeleted(path))
		}
	}
	found(r.view, somePlace)
	r.view.fire(zk.EventNodeDeleted, somePlace)
	r.show(nil)
	if s.SawDeleted(somePlace) {
		t.Error("without a reader, a deletion is remembered")
	}
	r.show(newView(s))
	if s.SawDeleted(somePlace) {
		t.Error("another connection remembers what it was not told")
	}
}
