package zookeeper

import (
	"strings"
	"testing"
	"time"
)

func TestARefusedTimeoutIsToldWhatItTakes(t *testing.T) {
	for heartbeat, takes := range map[time.Duration]string{2 * time.Second: "it takes 43.9s", time.Second: "it takes 39.2s"} {
		config := Config{TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: heartbeat, Proof: ProofStatic}
		if err := config.safe(30 * time.Second); err == nil || !strings.Contains(err.Error(), takes) {
			t.Errorf("with a heartbeat every %v: %v; want %q", heartbeat, err, takes)
		}
		least := config.shortestSafe()
		if config.safe(least) != nil || config.safe(least-100*time.Millisecond) == nil {
			t.Errorf("with a heartbeat every %v: %v is not the least that is safe", heartbeat, least)
		}
	}
}

func TestATimeoutIsShortThatMayEndBeforeAHeartbeatIsLate(t *testing.T) {
	config := Config{TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second}
	for timeout, short := range map[time.Duration]bool{
		4 * time.Second: true, 8 * time.Second: true, 10 * time.Second: false, 15 * time.Second: false, 40 * time.Second: false,
	} {
		if v := config.Validity(timeout); v.Short() != short {
			t.Errorf("%v: %+v, short: %v", timeout, v, v.Short())
		}
	}
}
