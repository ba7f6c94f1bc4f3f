package zookeeper

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/quota"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// What one caller puts into an ensemble, real as it is here, is no matter to the others.
func TestLimitsOnARealEnsemble(t *testing.T) {
	// Ticks of 2 s: servers that are busy with lists of 4 MiB must not lose each other.
	e := startEnsemble(t, ensemble.Options{
		TickTime: 2 * time.Second, MinSessionTimeout: time.Second, JVM: []string{"-Dzookeeper.enforceQuota=true"},
	})
	t.Run("a list that is too long fails whoever asks for it alone", func(t *testing.T) { aLongListFailsItsAsker(t, e) })
	t.Run("of two quotas, one is exhausted", func(t *testing.T) { quotasBoundPrefixes(t, e) })
	t.Run("quotas that are closed to others", func(t *testing.T) { closedQuotasAreObeyed(t, e) })
}

func aLongListFailsItsAsker(t *testing.T, e *ensemble.Ensemble) {
	const large, other = "/sidekeeper/large", "/sidekeeper/other"
	c := newClient(t, e, func(c *Config) {
		c.SessionTimeout = 30 * time.Second // a third of it bounds a read
		c.Heartbeat = 4 * time.Second       // a heartbeat's answer may come behind a list, and a busy machine is slow to read that
	})
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
		await(t, "the change", patience, changed.Done())
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

// A bounded is one of two prefixes with quotas, at work.
type bounded struct {
	*testing.T
	full, other       string
	operator, obeying *Client // the operator's knows of no quota, as other programs do
}

func (b bounded) put(c *Client, root, key string, size int) error {
	_, err := recipes.Config{Root: root}.Put(b.Context(), c, key, make([]byte, size), recipes.Precondition{})
	return err
}

func (b bounded) must(what string, err error) {
	b.Helper()
	if err != nil {
		b.Errorf("%s: %v", what, err)
	}
}

// refused wants an error of the full prefix, of nodes or bytes or, where the limit is not known, of neither.
func (b bounded) refused(what string, err error, limit string) {
	b.Helper()
	var exceeded *recipes.QuotaExceeded
	if !errors.As(err, &exceeded) || !strings.HasPrefix(exceeded.Path, b.full) || exceeded.Limit != limit {
		b.Errorf("%s: %v", what, err)
	}
}

// Of two prefixes with quotas, the one that is exhausted does not keep the other from growing, whoever is asked to write.
func quotasBoundPrefixes(t *testing.T, e *ensemble.Ensemble) {
	b := bounded{t, "/sidekeeper/full", "/sidekeeper/wide", newClient(t, e), newClient(t, e, func(c *Config) { c.Quotas = true })}
	b.must("a quota", quota.Set(t.Context(), b.operator, b.full, quota.Amount{Nodes: 10, Bytes: 1000}))
	b.must("another quota", quota.Set(t.Context(), b.operator, b.other, quota.Amount{Nodes: 1000, Bytes: quota.None}))
	if err := quota.Set(t.Context(), b.operator, b.full+"/below", quota.Amount{Nodes: 1}); !errors.Is(err, quota.ErrNested) {
		t.Errorf("a quota in a quota: %v", err)
	}
	b.must("the first key", b.put(b.obeying, b.full, "0", 600))
	b.must("as large a value again", b.put(b.obeying, b.full, "0", 600))
	b.refused("a second key", b.put(b.obeying, b.full, "1", 600), "bytes")
	b.refused("a larger value", b.put(b.obeying, b.full, "0", 1001), "bytes")
	b.must("a smaller value", b.put(b.obeying, b.full, "0", 100))
	b.must("a second key", b.put(b.obeying, b.full, "1", 600))
	for i := range 7 {
		b.must("a small key", b.put(b.obeying, b.full, fmt.Sprintf("small-%d", i), 0))
	}
	b.refused("an eleventh node", b.put(b.obeying, b.full, "eleventh", 0), "nodes")
	b.refused("an eleventh node, by the ensemble", b.put(b.operator, b.full, "eleventh", 0), "")
	quotasBoundSessions(b, b.obeying, "nodes")
	quotasBoundSessions(b, b.operator, "")
	starts := newClient(t, e, func(c *Config) { c.Quotas, c.Directories = true, []string{"/sidekeeper", b.full} })
	b.must("a sidecar starts", starts.CatchUp(t.Context()))
	b.must("a key gone", recipes.Config{Root: b.full}.Delete(t.Context(), b.obeying, "small-0", recipes.Precondition{}))
	b.must("another in its place", b.put(b.obeying, b.full, "eleventh", 0))
	b.must("the quota gone", quota.Remove(t.Context(), b.operator, b.full))
	b.must("a twelfth", b.put(b.operator, b.full, "twelfth", 2000))
	known, err := quota.Read(t.Context(), b.operator, "/sidekeeper")
	if err != nil || len(known) != 1 || known[0].Path != b.other || known[0].Used != (quota.Amount{Nodes: 3, Bytes: 10000}) {
		t.Errorf("quotas: %+v, %v", known, err)
	}
}

// quotasBoundSessions has a session make what there is no room for, and something elsewhere.
func quotasBoundSessions(b bounded, c *Client, limit string) {
	b.Helper()
	s := openSession(b.T, c)
	_, err := s.Enqueue(b.Context(), b.full+"/0", "-lock-", nil)
	b.refused("a place", err, limit)
	_, _, err = s.Create(b.Context(), b.full+"/member", nil)
	b.refused("a member", err, limit)
	_, _, err = s.Create(b.Context(), b.full+"/group/member", nil)
	b.refused("a group", err, limit)
	b.must("elsewhere", b.put(c, b.other, "by "+limit, 5000))
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
