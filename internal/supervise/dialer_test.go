//go:build !windows

package supervise

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A claim that is resumed hangs on a connection that its guardian has never inherited.
func TestAGuardianHasEachConnectionBeforeItIsUsed(t *testing.T) {
	folder, err := os.MkdirTemp("", "dialer") // not t.TempDir: its path can be longer than a Unix socket's may be
	must(t, err)
	defer os.RemoveAll(folder)
	listener, err := net.Listen("unix", filepath.Join(folder, "socket"))
	must(t, err)
	defer listener.Close()
	reader, orders, err := socketPair()
	must(t, err)
	guardian, err := net.FileConn(reader)
	must(t, err)
	must(t, reader.Close())
	defer guardian.Close()

	d, child := &Dialer{}, &Child{orders: orders}
	dial := func() (ours, theirs net.Conn) {
		ours, err := d.Dial(t.Context(), "unix", listener.Addr().String())
		must(t, err)
		theirs, err = listener.Accept()
		must(t, err)
		return ours, theirs
	}
	first, _ := dial()
	inherited, err := d.first()
	must(t, err)
	must(t, inherited.file.Close())
	must(t, d.giveTo(child, inherited.of))
	must(t, first.Close())
	ours, theirs := dial()

	message, rights := make([]byte, 64), make([]byte, syscall.CmsgSpace(4))
	must(t, guardian.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, size, _, _, err := guardian.(*net.UnixConn).ReadMsgUnix(message, rights) //nolint:dogsled,forcetypeassert // as it is
	must(t, err)
	messages, err := syscall.ParseSocketControlMessage(rights[:size])
	must(t, err)
	if len(messages) != 1 {
		t.Fatalf("%d connections have come", len(messages))
	}
	kept, err := syscall.ParseUnixRights(&messages[0])
	must(t, err)
	must(t, ours.Close())
	must(t, theirs.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if _, err := theirs.Read(make([]byte, 1)); !os.IsTimeout(err) {
		t.Errorf("the sidecar sees its end while the guardian has it: %v", err)
	}
	must(t, syscall.Close(kept[0]))
	must(t, theirs.SetReadDeadline(time.Now().Add(10*time.Second)))
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection has not ended: %v", err)
	}

	frozen := exec.Command("sleep", "1000")
	must(t, startGuardian(frozen))
	child.guardian, child.Exited = frozen, make(chan struct{})
	other, itsOrders, err := socketPair()
	must(t, err)
	defer other.Close()
	healthy := &Child{orders: itsOrders}
	must(t, d.giveTo(healthy, d.newest))
	must(t, guardian.Close())
	go func() {
		defer close(child.Exited)
		_ = frozen.Wait()
		endOrphans(frozen)
	}()
	dial()
	if !child.hasExited() {
		t.Error("a connection has come about before the command has ended whose guardian does not keep it")
	}
	if healthy.wasEnded() || d.children[healthy] != d.newest {
		t.Error("the guardian of another command has not got it")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
