package zookeeper

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/quota"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// What one caller puts into an ensemble, real as it is here, is no matter to the others.
func TestLimitsOnARealEnsemble(t *testing.T) {
	e := startEnsemble(t, ensemble.Options{JVM: []string{"-Dzookeeper.enforceQuota=true"}})
	t.Run("a list that is too long fails whoever asks for it alone", func(t *testing.T) { aLongListFailsItsAsker(t, e) })
	t.Run("of two quotas, one is exhausted", func(t *testing.T) { quotasBoundPrefixes(t, e) })
	t.Run("quotas that are closed to others", func(t *testing.T) { closedQuotasAreObeyed(t, e) })
}

func aLongListFailsItsAsker(t *testing.T, e *ensemble.Ensemble) {
	const large, other = "/sidekeeper/large", "/sidekeeper/other"
	c := newClient(t, e)
	for _, dir := range []string{large, other} {
		if err := c.MakeDirectory(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 194)
	for i := range 212 {
		var changes []recipes.Change
		for j := range 100 {
			changes = append(changes, recipes.Create(fmt.Sprintf("%s/%s%03d%03d", large, long, i, j), nil))
		}
		if _, err := c.Commit(t.Context(), changes...); err != nil {
			t.Fatal(err)
		}
	}
	config := recipes.Config{Root: other}
	if _, err := config.Put(t.Context(), c, "key", []byte("0"), recipes.Precondition{}); err != nil {
		t.Fatal(err)
	}
	view, _ := c.reader.current()
	for i := range 20 {
		_, changed, err := c.Watch(t.Context(), other+"/key")
		if err != nil {
			t.Fatal(err)
		}
		var tooLarge *recipes.LargeDirectory
		c.reader.large.mu.Lock()
		c.reader.large.known = nil // or it would not be asked for
		c.reader.large.mu.Unlock()
		if _, err := c.Children(t.Context(), large); !errors.As(err, &tooLarge) || tooLarge.Path != large || tooLarge.Bytes < 4<<20 {
			t.Fatalf("list %d: %v", i, err)
		}
		value := fmt.Append(nil, i)
		if _, err := config.Put(t.Context(), c, "key", value, recipes.Precondition{}); err != nil {
			t.Fatalf("put %d: %v", i, err)
		}
		await(t, "the change", patience, changed)
		if err := c.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := config.Get(t.Context(), c, "key"); err != nil || !bytes.Equal(got.Value, value) {
			t.Fatalf("get %d: %q, %v", i, got.Value, err)
		}
	}
	if now, _ := c.reader.current(); now != view {
		t.Error("the reader had to begin anew")
	}
}

// Of two prefixes with quotas, the one that is exhausted does not keep the other from growing, whoever is asked to write.
func quotasBoundPrefixes(t *testing.T, e *ensemble.Ensemble) {
	const full, other = "/sidekeeper/full", "/sidekeeper/wide"
	operator := newClient(t, e) // knows of no quota, as other programs do
	for _, c := range []struct {
		path string
		max  quota.Amount
	}{{full, quota.Amount{Nodes: 10, Bytes: 1000}}, {other, quota.Amount{Nodes: 1000, Bytes: quota.None}}} {
		if err := quota.Set(t.Context(), operator, c.path, c.max); err != nil {
			t.Fatal(err)
		}
	}
	if err := quota.Set(t.Context(), operator, full+"/below", quota.Amount{Nodes: 1}); !errors.Is(err, quota.ErrNested) {
		t.Errorf("a quota in a quota: %v", err)
	}
	obeying := newClient(t, e, func(c *Config) { c.Quotas = true })
	put := func(c *Client, root, key string, size int) error {
		_, err := recipes.Config{Root: root}.Put(t.Context(), c, key, make([]byte, size), recipes.Precondition{})
		return err
	}
	refused := func(what string, err error, limit string) {
		t.Helper()
		var exceeded *recipes.QuotaExceeded
		if !errors.As(err, &exceeded) || exceeded.Path != full || exceeded.Limit != limit {
			t.Errorf("%s: %v", what, err)
		}
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	must("the first key", put(obeying, full, "0", 600))
	must("as large a value again", put(obeying, full, "0", 600))
	refused("a second key", put(obeying, full, "1", 600), "bytes")
	refused("a larger value", put(obeying, full, "0", 1001), "bytes")
	must("a smaller value", put(obeying, full, "0", 100))
	must("a second key", put(obeying, full, "1", 600))
	for i := range 7 {
		must("a small key", put(obeying, full, fmt.Sprintf("small-%d", i), 0))
	}
	refused("an eleventh node", put(obeying, full, "eleventh", 0), "nodes")
	var unexplained *recipes.QuotaExceeded
	if err := put(operator, full, "eleventh", 0); !errors.As(err, &unexplained) || unexplained.Limit != "" {
		t.Errorf("an eleventh node, refused by the ensemble: %v", err)
	}
	for name, c := range map[string]*Client{"obeying": obeying, "not knowing": operator} {
		s := openSession(t, c)
		_, _, err := s.Enqueue(t.Context(), full+"/0", "-lock-", nil)
		if !errors.Is(err, recipes.ErrQuota) {
			t.Errorf("%s: a place: %v", name, err)
		}
		if _, _, err = s.Create(t.Context(), full+"/member", nil); !errors.Is(err, recipes.ErrQuota) {
			t.Errorf("%s: a member: %v", name, err)
		}
		if _, _, err = s.Create(t.Context(), full+"/group/member", nil); !errors.Is(err, recipes.ErrQuota) {
			t.Errorf("%s: a group: %v", name, err)
		}
		must(name+": elsewhere", put(c, other, name, 5000))
	}
	must("a key gone", recipes.Config{Root: full}.Delete(t.Context(), obeying, "small-0", recipes.Precondition{}))
	must("another in its place", put(obeying, full, "eleventh", 0))
	must("the quota gone", quota.Remove(t.Context(), operator, full))
	must("a twelfth", put(operator, full, "twelfth", 2000))
	known, err := quota.Read(t.Context(), operator, "/sidekeeper")
	if err != nil || len(known) != 1 || known[0].Path != other || known[0].Used.Nodes != 3 || known[0].Used.Bytes != 10000 {
		t.Errorf("quotas: %+v, %v", known, err)
	}
}

// With /zookeeper/quota closed to others, quotas are obeyed, and nobody else lifts them.
func closedQuotasAreObeyed(t *testing.T, e *ensemble.Ensemble) {
	const closed = "/sidekeeper/closed"
	sidecar := newClient(t, e, func(c *Config) {
		c.Quotas = true
		c.Auth = func() [][]byte { return [][]byte{[]byte("sidekeeper:secret")} }
	})
	if err := quota.Set(t.Context(), sidecar, closed, quota.Amount{Nodes: 2, Bytes: quota.None}); err != nil {
		t.Fatal(err)
	}
	view, _ := sidecar.reader.current()
	if _, err := view.session.conn.SetACL(quota.Root, zk.AuthACL(zk.PermAll), -1); err != nil {
		t.Fatal(err)
	}
	others := newClient(t, e)
	if err := quota.Remove(t.Context(), others, closed); !errors.Is(err, recipes.ErrDenied) {
		t.Errorf("removed by others: %v", err)
	}
	if err := quota.Set(t.Context(), others, "/sidekeeper/elsewhere", quota.Amount{}); !errors.Is(err, recipes.ErrDenied) {
		t.Errorf("set by others: %v", err)
	}
	config := recipes.Config{Root: closed}
	if _, err := config.Put(t.Context(), sidecar, "a", nil, recipes.Precondition{}); err != nil {
		t.Error(err)
	}
	var exceeded *recipes.QuotaExceeded
	if _, err := config.Put(t.Context(), sidecar, "b", nil, recipes.Precondition{}); !errors.As(err, &exceeded) || exceeded.Limit != "nodes" {
		t.Errorf("a third node: %v", err)
	}
}
