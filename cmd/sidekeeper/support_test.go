package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

// role makes the test binary another program: real commands that need no shell.
const role = "SIDEKEEPER_TEST_ROLE"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervise.GuardianCommand {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	switch os.Getenv(role) {
	case "sidekeeper":
		os.Setenv(role, "command")
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "counted":
		os.Setenv(role, "command")
		os.Exit(counted(os.Args[1:]))
	case "command":
		os.Exit(command(os.Args[1:]))
	default:
		os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // or each of many processes takes a second to end
		completionTime = patience
		goleak.VerifyTestMain(m)
	}
}

// command is what lock run runs in these tests.
func command(args []string) int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, supervise.Forwarded...)
	switch args[0] {
	case "environment":
		fmt.Fprintln(os.Stdout, os.Getenv("SIDEKEEPER_LOCK_NAME"), os.Getenv("SIDEKEEPER_FENCING_TOKEN"), environmentHas("HOLD"),
			os.Getenv(supervise.GuardsVariable))
		return 3
	case "membership":
		fmt.Fprintln(os.Stdout, os.Getenv("SIDEKEEPER_GROUP_NAME"), os.Getenv("SIDEKEEPER_MEMBER_NAME"),
			os.Getenv("SIDEKEEPER_INCARNATION"), environmentHas("LEASE"))
		return 3
	case "copy":
		io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintln(os.Stderr, "copied")
		return 0
	case "die":
		signal.Reset(syscall.SIGTERM)
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
		select {}
	case "obey": // ends with whatever ends programs
		signal.Reset()
		fmt.Fprintln(os.Stdout, "ready")
		<-time.After(time.Minute)
	case "ask": // reads a line from its terminal, whatever its input is
		terminal, err := os.Open("/dev/tty")
		if err != nil {
			panic(err)
		}
		line, _ := bufio.NewReader(terminal).ReadString('\n')
		fmt.Fprint(os.Stdout, "read "+line)
		return 0
	case "balk": // stops again and again, as one does that reads a terminal from the background
		signal.Reset()
		for {
			fmt.Fprintln(os.Stdout, "again")
			syscall.Kill(os.Getpid(), syscall.SIGTTIN)
			<-time.After(20 * time.Millisecond) // until it has stopped
		}
	case "polite": // says which signals it gets, and ends with SIGTERM
		fmt.Fprintln(os.Stdout, "ready")
		for got := range signals {
			fmt.Fprintln(os.Stdout, got)
			if got == syscall.SIGTERM {
				return 5
			}
		}
	case "stubborn": // says which signals it gets, and never ends
		fmt.Fprintln(os.Stdout, "ready")
		for got := range signals {
			fmt.Fprintln(os.Stdout, got)
		}
	case "family": // tells the numbers of what it has started, and ends with SIGTERM
		family(args[1:])
		for got := range signals {
			if got == syscall.SIGTERM {
				return 5
			}
		}
	case "leave": // starts another, and leaves it alone
		family(args[1:])
		return 0
	case "linger": // ends a moment after SIGTERM
		for got := range signals {
			if got == syscall.SIGTERM {
				<-time.After(500 * time.Millisecond)
				return 0
			}
		}
	case "stay": // never ends
		for {
			<-signals
		}
	}
	return 99
}

// family starts processes that behave as the arguments say, and tells their numbers: `stay`, or `session`, which stays in a session
// of its own and as nobody's child. The `parent` is there already.
func family(members []string) {
	for _, behaviour := range members {
		if behaviour == "parent" {
			fmt.Fprintln(os.Stdout, os.Getppid())
			continue
		}
		if behaviour == "session" {
			leaver := exec.Command(os.Args[0], "leave", "stay")
			leaver.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			number, err := leaver.Output()
			if err != nil {
				panic(err)
			}
			os.Stdout.Write(number) // now that it is nobody's child
			continue
		}
		member := exec.Command(os.Args[0], behaviour)
		if err := member.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, member.Process.Pid)
	}
}

func environmentHas(word string) bool {
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "SIDEKEEPER_"+word) {
			return true
		}
	}
	return false
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatal("what had to happen has not happened")
		panic("unreachable")
	}
}

// A program is a sidekeeper in a process of its own, since it may kill whatever its process has started.
type program struct {
	t       *testing.T
	process *os.Process
	lines   chan string
	stderr  *buffer
	code    chan int
}

// start starts sidekeeper towards the server there, until the test ends at the latest.
func start(t *testing.T, address string, args ...string) *program {
	t.Helper()
	return startAs(t, func(*exec.Cmd) {}, address, args...)
}

// startAs is start with a process that is set up further.
func startAs(t *testing.T, set func(*exec.Cmd), address string, args ...string) *program {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	p := &program{t: t, lines: make(chan string, 100), stderr: &buffer{}, code: make(chan int, 1)}
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), role+"=sidekeeper", sidekeeper.AddressVariable+"="+address)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader("input"), writer, p.stderr
	command.WaitDelay = time.Second // what is left of it may have its stderr open
	set(command)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p.process = command.Process
	go func() {
		_ = command.Wait() // its code says it all
		p.code <- command.ProcessState.ExitCode()
	}()
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.process.Kill() // it may have ended
		reader.Close()
		for range p.lines { // until its end
		}
	})
	return p
}

// signal sends the program a signal.
func (p *program) signal(number syscall.Signal) {
	p.t.Helper()
	if err := p.process.Signal(number); err != nil {
		p.t.Fatal(err)
	}
}

// want compares the exit code and what was said on stderr.
func (p *program) want(t *testing.T, code int, said ...string) {
	t.Helper()
	got := receive(t, p.code)
	for _, words := range said {
		if !strings.Contains(p.stderr.String(), words) {
			t.Errorf("stderr is %q, want %q in it", p.stderr, words)
		}
	}
	if got != code {
		t.Errorf("exit code %d, want %d; stderr: %s", got, code, p.stderr)
	}
}

// wantLine compares the next line of the output.
func (p *program) wantLine(t *testing.T, want string) {
	t.Helper()
	if line := receive(t, p.lines); line != want {
		t.Errorf("got line %q, want %q; stderr: %s", line, want, p.stderr)
	}
}

// output runs sidekeeper to its end.
func output(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out bytes.Buffer
	var err buffer // of several goroutines
	code = run(t.Context(), args, strings.NewReader(""), &out, &err)
	return out.String(), err.String(), code
}

type buffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}
