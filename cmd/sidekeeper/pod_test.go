package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// An application is a container beside a sidecar: it holds the lock `orders` while it runs, and needs a moment to finish when it gets
// SIGTERM. What it and others do is written into one file, in the order in which it happens.
type application struct {
	t       *testing.T
	command *exec.Cmd
	file    string
	ended   chan error
}

// deploy starts an application, and returns when it works under the lock.
func deploy(t *testing.T, beside *served) *application {
	t.Helper()
	a := &application{t: t, file: filepath.Join(t.TempDir(), "file"), ended: make(chan error, 1)}
	script := fmt.Sprintf(`trap 'sleep 0.5; echo finished >>%s; exit 0' TERM; echo ready; while :; do sleep 0.02; done`, a.file)
	a.command = exec.Command(os.Args[0], "--address", beside.address, "lock", "run", "orders", "--", "sh", "-c", script)
	a.command.Env = append(os.Environ(), role+"=sidekeeper")
	out, err := a.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.command.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	go func() { a.ended <- a.command.Wait() }()
	return a
}

func (a *application) terminate() {
	a.t.Helper()
	if err := a.command.Process.Signal(syscall.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
}

// note adds a line to the file.
func (a *application) note(line string) {
	a.t.Helper()
	file, err := os.OpenFile(a.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		a.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(line + "\n"); err != nil {
		a.t.Fatal(err)
	}
}

// waitElsewhere waits for the lock in another pod, and notes when it is granted.
func (a *application) waitElsewhere(beside *served) <-chan error {
	a.t.Helper()
	client, err := sidekeeper.Dial(beside.address)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	a.t.Cleanup(cancel)
	queued, granted := make(chan struct{}, 1000), make(chan error, 1)
	go func() {
		options := sidekeeper.LockOptions{OnQueued: func(sidekeeper.Queued) { queued <- struct{}{} }}
		granted <- client.WithLock(ctx, "orders", options, func(context.Context, *sidekeeper.Lock) error {
			a.note("granted elsewhere")
			return nil
		})
	}()
	receive(a.t, queued)
	return granted
}

func (a *application) wantInOrder(want string) {
	a.t.Helper()
	if got, err := os.ReadFile(a.file); string(got) != want {
		a.t.Errorf("what happened: %q, %v", got, err)
	}
}

func twoSidecars(t *testing.T) (own, other *served) {
	t.Helper()
	_, address := memoryEnsemble(t)
	return serve(t, "--zookeeper="+address, "--drain-timeout=10s"), serve(t, "--zookeeper="+address)
}

// As the kubelet does with a native sidecar: the application first, and when it has ended, the sidecar.
func TestAPodWithANativeSidecarEndsInOrder(t *testing.T) {
	t.Parallel()
	own, other := twoSidecars(t)
	app := deploy(t, own)
	granted := app.waitElsewhere(other)
	app.terminate()
	if err := receive(t, app.ended); err != nil {
		t.Errorf("the application: %v", err)
	}
	if err := receive(t, granted); err != nil {
		t.Error(err)
	}
	app.wantInOrder("finished\ngranted elsewhere\n")
	began := time.Now()
	own.signal(syscall.SIGTERM)
	if code := own.ends(); code != 0 {
		t.Errorf("the sidecar: exit %d; log: %s", code, own.log)
	}
	t.Logf("the sidecar ended within %v", time.Since(began))
}

// As the kubelet does with ordinary containers: all at the same time.
func TestAPodWhoseContainersAllGetSIGTERMAtOnceEndsInOrder(t *testing.T) {
	t.Parallel()
	own, other := twoSidecars(t)
	app := deploy(t, own)
	granted := app.waitElsewhere(other)
	own.signal(syscall.SIGTERM)
	app.terminate()
	if err := receive(t, app.ended); err != nil {
		t.Errorf("the application: %v", err)
	}
	if err := receive(t, granted); err != nil {
		t.Error(err)
	}
	app.wantInOrder("finished\ngranted elsewhere\n")
	if code := own.ends(); code != 0 {
		t.Errorf("the sidecar: exit %d; log: %s", code, own.log)
	}
}

// As the kubelet does when the grace period is over: SIGKILL for whatever is left.
func TestAPodThatIsKilledLosesItsLockToAnotherInTime(t *testing.T) {
	t.Parallel()
	_, address := memoryEnsemble(t)
	own, other := serve(t, "--zookeeper="+address, "--session-timeout=10s"), serve(t, "--zookeeper="+address)
	app := deploy(t, own)
	granted := app.waitElsewhere(other)
	own.signal(syscall.SIGKILL)
	if err := app.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	receive(t, app.ended)
	if err := receive(t, granted); err != nil {
		t.Error(err)
	}
	if got := content(t, app.file); strings.TrimPrefix(got, "finished\n") != "granted elsewhere\n" { // it may have heard of the sidecar's end
		t.Errorf("what happened: %q", got)
	}
}
