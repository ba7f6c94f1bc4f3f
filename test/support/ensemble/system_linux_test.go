package ensemble

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// directoryVariable tells a process of TestServersDieWithTheirProgram that it is the program, and where to work.
const directoryVariable = "SIDEKEEPER_TEST_ENSEMBLE"

func TestServersDieWithTheirProgram(t *testing.T) {
	if directory := os.Getenv(directoryVariable); directory != "" {
		beTheProgram(t, directory)
	}
	program := exec.Command(os.Args[0], "-test.run=^TestServersDieWithTheirProgram$")
	program.Env = append(os.Environ(), directoryVariable+"="+t.TempDir())
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	var process int
	_, scanErr := fmt.Fscanf(output, "server %d\n", &process)
	server, err := unix.PidfdOpen(process, 0)
	program.Process.Kill()
	program.Wait()
	if scanErr != nil || err != nil {
		t.Fatal(scanErr, err)
	}
	defer unix.Close(server)
	ended := []unix.PollFd{{Fd: int32(server), Events: unix.POLLIN}}
	if count, err := unix.Poll(ended, int(limit.Milliseconds())); count != 1 || err != nil {
		t.Errorf("server %d is left: %v", process, err)
	}
}

// beTheProgram starts a server, tells its number and waits to be killed.
func beTheProgram(t *testing.T, directory string) {
	e := start(t, Options{Servers: 1, Dir: directory})
	fmt.Fprintf(os.Stdout, "server %d\n", e.Server(1).ProcessID())
	select {}
}

func TestAReservedPortIsForWhoeverAsksForItByNumber(t *testing.T) {
	reserved, err := reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer reserved.release()
	for range 3 {
		listener, err := net.Listen("tcp", reserved.address())
		if err != nil {
			t.Fatal(err)
		}
		listener.Close()
	}
	for range 200 {
		other, err := reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(other.release)
		if other.number == reserved.number {
			t.Fatal("the system gave the port away")
		}
	}
}

func TestAFrozenServerHasStoppedWhenFreezeReturns(t *testing.T) {
	e := start(t, Options{Servers: 1})
	s := e.Server(1)
	s.Freeze()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(s.ProcessID()) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	var number int
	var name, state string
	if fmt.Sscan(string(status), &number, &name, &state); state != "T" {
		t.Errorf("its state is %s", state)
	}
	conn, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(limit))
	io.WriteString(conn, "ruok")
	s.Continue()
	if answer, err := io.ReadAll(conn); string(answer) != "imok" {
		t.Errorf("the server answers %q, %v", answer, err)
	}
}
