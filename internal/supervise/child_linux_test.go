package supervise

import (
	"os/exec"
	"testing"
	"time"
)

func TestAGuardianThatReadsNoOrdersHoldsNobodyUp(t *testing.T) {
	reader, writer, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	frozen := exec.Command("sleep", "1000")
	if err := frozen.Start(); err != nil {
		t.Fatal(err)
	}
	c := &Child{guardian: frozen, orders: writer}
	began := time.Now()
	for c.order(order{Until: time.Since(began)}) {
		if time.Since(began) > time.Minute {
			t.Fatal("there is no end of the orders that it takes")
		}
	}
	c.Kill(0)
	if !c.wasEnded() {
		t.Error("there is nobody to kill")
	}
	if err := frozen.Wait(); frozen.ProcessState.Exited() {
		t.Errorf("it ended by itself: %v", err)
	}
}
