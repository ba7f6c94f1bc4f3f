package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var shop = recipes.Group{Path: "/groups/shop"}

// A member is one membership and what has become of it.
type member struct {
	*recipes.Membership
	session *standin.Session
}

// enlist joins the group with a session of its own.
func (w world) enlist(name string, metadata ...string) member {
	w.Helper()
	session := w.session()
	membership, err := shop.Join(w.living, session, name, about(name, metadata...))
	if err != nil {
		w.Fatal(err)
	}
	return member{membership, session}
}

// about is an owner `of name` with metadata given as keys and values.
func about(name string, metadata ...string) recipes.About {
	said := recipes.About{Owner: "of " + name}
	for i := 0; i < len(metadata); i += 2 {
		if said.Metadata == nil {
			said.Metadata = map[string]string{}
		}
		said.Metadata[metadata[i]] = metadata[i+1]
	}
	return said
}

// stands is what a member sees of itself.
func (w world) stands(m member) string {
	w.Helper()
	standing, _, err := m.Look(w.Context())
	switch {
	case errors.Is(err, recipes.ErrRemoved):
		return "removed by hand"
	case err != nil:
		return err.Error()
	case errors.Is(standing.End, recipes.ErrReplaced):
		return fmt.Sprintf("replaced by %s: %s", standing.By, standing.Reason)
	case errors.Is(standing.End, recipes.ErrRemoved):
		return fmt.Sprintf("removed by %s: %s", standing.By, standing.Reason)
	}
	return fmt.Sprint(standing.Metadata)
}

// attend has the member leave as soon as somebody asks for its end, as its sidecar would.
func (w world) attend(m member) {
	go func() {
		for {
			standing, changed, err := m.Look(w.living)
			if err != nil || standing.End != nil {
				m.Leave(w.living)
				return
			}
			if wait(w.living, changed.Done(), nil) != nil {
				return
			}
		}
	}()
}

// inside is who is in the group.
func (w world) inside() string {
	w.Helper()
	view, err := shop.View(w.Context(), w.NewReader())
	if err != nil {
		w.Fatal(err)
	}
	var names []string
	for _, m := range view.Members {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}

func (w world) wantInside(want string) {
	w.Helper()
	synctest.Wait()
	if got := w.inside(); got != want {
		w.Fatalf("in the group are %q, want %q", got, want)
	}
}

// foreignMember makes a member that is not ours.
func (w world) foreignMember(name, data string) (path string, session *standin.Session) {
	w.Helper()
	session = w.session()
	path, err := w.Create(shop.Path+"/"+name, []byte(data), embedded.Ephemeral, session.ID())
	if err != nil {
		w.Fatal(err)
	}
	return path, session
}

// An eviction is an Evict that is under way.
type eviction struct {
	mu     sync.Mutex
	done   bool
	forced bool
	err    error
}

func (o *eviction) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !o.done:
		return "waiting"
	case o.err != nil:
		return o.err.Error()
	}
	return fmt.Sprintf("gone, forced %t", o.forced)
}

const forceAfter = 20 * time.Second

func after(d time.Duration) recipes.ForceAfter { return recipes.ForceAfter{After: &d} }

func (w world) evict(name string) *eviction { return w.evictThrough(w.living, w.NewReader(), name) }

func (w world) evictThrough(ctx context.Context, store recipes.Store, name string) *eviction {
	o := &eviction{}
	go func() {
		forced, err := shop.Evict(ctx, store, name, recipes.Eviction{
			Replace: true, By: "uid:7", Reason: "restarted", ForceAfter: after(forceAfter),
		})
		o.mu.Lock()
		defer o.mu.Unlock()
		o.done, o.forced, o.err = true, forced, err
	}()
	synctest.Wait()
	return o
}

func (w world) wantEviction(o *eviction, want string) {
	w.Helper()
	synctest.Wait()
	if got := o.String(); got != want {
		w.Fatalf("the eviction is %q, want %q", got, want)
	}
}
