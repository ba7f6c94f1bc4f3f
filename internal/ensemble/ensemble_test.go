package ensemble

import (
	"testing"
	"time"
)

func TestThree(t *testing.T) {
	start := time.Now()
	e, err := Start(t.Context(), Options{TickTime: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("up", time.Since(start))
	defer func() { start := time.Now(); e.Close(); t.Log("close", time.Since(start)) }()
	for range 5 {
		l := e.Leader(t.Context())
		start = time.Now()
		l.Kill()
		n, err := e.AwaitQuorum(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Log("leader", l.ID(), "->", n.ID(), time.Since(start))
		l.Restart()
		if err := e.AwaitAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Log("all", time.Since(start))
	}
}
