package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	devv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/dev/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// develop starts `sidekeeper dev` in a process of its own, and returns when it has said what to try.
func develop(t *testing.T, args ...string) (s *served, welcome string) {
	t.Helper()
	return developWith(t, nil, args...)
}

// developWith is develop with a standard input.
func developWith(t *testing.T, input io.Reader, args ...string) (s *served, welcome string) {
	t.Helper()
	s = &served{t: t, log: &bytes.Buffer{}, ended: make(chan error, 1)}
	s.command = exec.Command(os.Args[0], append([]string{"dev", "--listen=127.0.0.1:0"}, args...)...)
	s.command.Env = append(os.Environ(), role+"=sidekeeper", "TMPDIR="+t.TempDir())
	s.command.Stdin, s.command.Stderr = input, s.log
	out, err := s.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.command.Process.Kill() })
	lines := bufio.NewScanner(out)
	for !strings.Contains(welcome, "Ctrl-C here stops it") && lines.Scan() {
		welcome += lines.Text() + "\n"
	}
	t.Logf("ready after %v", time.Since(began))
	go func() { s.ended <- s.command.Wait() }()
	s.address = said(t, welcome, callers)
	return s, welcome
}

// callers is a pattern of what the welcome says of the sidecar's address.
const callers = `callers: .*, (127\.0\.0\.1:\d+)`

// said is what the welcome says in that place.
func said(t *testing.T, welcome, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(welcome)
	if match == nil {
		t.Fatalf("nothing like %s is said in\n%s", pattern, welcome)
	}
	return match[1]
}

func TestDevSaysWhatIsThereAndEndsWithZeroOnCtrlC(t *testing.T) {
	t.Parallel()
	s, welcome := develop(t)
	if conn, err := net.Dial("tcp", said(t, welcome, `ensemble: +(127\.0\.0\.1:\d+)`)); err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
	socket := said(t, welcome, `unix://(/\S+\.sock)`)
	for _, address := range []string{"unix://" + socket, s.address} {
		out, errors, code := output(t, "--address", address, "health", "--ready")
		if code != 0 || out != "serving\n" {
			t.Errorf("health at %s: %d %s %s", address, code, out, errors)
		}
	}
	s.signal(syscall.SIGINT)
	if code := s.ends(); code != 0 {
		t.Errorf("exit %d; log: %s", code, s.log)
	}
	if _, err := os.Stat(filepath.Dir(socket)); err == nil {
		t.Errorf("%s is left behind", socket)
	}
	if !strings.Contains(s.log.String(), "\tinfo\t") {
		t.Errorf("the log is not for people: %s", s.log)
	}
}

func TestDevEndsWithTheProgramThatStartedIt(t *testing.T) {
	t.Parallel()
	input, parent, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s, welcome := developWith(t, input, "--until-input-ends")
	input.Close()
	parent.Close() // as the system does when a process ends, in whatever way
	if code := s.ends(); code != 0 {
		t.Errorf("exit %d; log: %s", code, s.log)
	}
	socket := said(t, welcome, `unix://(/\S+\.sock)`)
	if _, err := os.Stat(filepath.Dir(socket)); err == nil {
		t.Errorf("%s is left behind", socket)
	}
}

func TestDevServesTLSWithCertificatesThatItMakes(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "made")
	s, welcome := develop(t, "--tls-folder", folder)
	if !strings.Contains(welcome, "client-key.pem from "+folder) {
		t.Errorf("it does not say where the certificates are: %s", welcome)
	}
	own := []string{"--tls-ca", folder + "/ca.pem", "--tls-cert", folder + "/client.pem", "--tls-key", folder + "/client-key.pem"}
	for _, test := range []struct {
		flags []string
		code  int
	}{{own, 0}, {own[:2], exit.Unreachable}, {nil, exit.Unreachable}} {
		_, complaint, code := output(t, append([]string{"--address", s.address, "health"}, test.flags...)...)
		if code != test.code {
			t.Errorf("%q: exit %d, %s", test.flags, code, complaint)
		}
	}
}

func TestDevSaysThatCertificatesCannotBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, complaint, code := output(t, "dev", "--listen", "127.0.0.1:0", "--tls-folder", file)
	if code != exit.Usage || !strings.Contains(complaint, "make certificates: mkdir "+file) {
		t.Errorf("exit %d, %q", code, complaint)
	}
}

func TestDevSaysThatItsAddressIsTaken(t *testing.T) {
	t.Parallel()
	s, _ := develop(t)
	_, said, code := output(t, "dev", "--listen", s.address)
	if code != exit.Usage || !strings.Contains(said, "--listen 127.0.0.1:0") || !strings.Contains(said, s.address) {
		t.Errorf("exit %d, %q", code, said)
	}
}

func TestDevRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for flag, complaint := range map[string]string{
		"--listen=0.0.0.0:7181":  "loopback addresses only, unless with --listen-anywhere",
		"--fault=earthquake=1s":  "expire-lease=",
		"--session-timeout=1s":   "session timeout",
		"--clock-tolerance=1s":   "--clock-tolerance 1s: from 1m to 24h",
		"--ensemble-port=123456": "from 0 to 65535",
		"--console-listen=:0":    `--console-listen: ":0" is not a loopback host:port`,
	} {
		_, said, code := output(t, "dev", "--listen", "127.0.0.1:0", flag)
		if code != exit.Usage || !strings.Contains(said, complaint) {
			t.Errorf("%s: exit %d, %q", flag, code, said)
		}
	}
}

func TestACommandEndsWhoseLockIsLostByAnInjectedExpiry(t *testing.T) {
	t.Parallel()
	s, _ := develop(t)
	p := start(t, s.address, "lock", "run", "orders", "--", os.Args[0], "polite")
	p.wantLine(t, "ready")
	s.expire(t, "orders")
	p.want(t, exit.Lost)
}

// What the welcome says comes next, to the letter but for the token. The README shows the same.
func TestTheSceneOfTheWelcomeIsThatOfTheREADME(t *testing.T) {
	t.Parallel()
	s, welcome := develop(t)
	_, next, _ := strings.Cut(welcome, "\nNext, ")
	if lines := strings.Count(next, "\n"); lines < 5 || lines > 12 {
		t.Errorf("%d lines say what comes next, want at most 12:\n%s", lines, next)
	}
	export := said(t, next, `(export SIDEKEEPER_ADDRESS=.*)`)
	run := said(t, next, `sidekeeper\.test (lock run .*)`)
	end := said(t, next, `sidekeeper\.test (lock break .*)`)
	readme := document(t, "README.md")
	for _, shown := range []string{
		strings.ReplaceAll(export, s.address, "127.0.0.1:7181"), "bin/sidekeeper " + run, "bin/sidekeeper " + strings.Replace(end, "TOKEN", "26", 1),
	} {
		if !strings.Contains(readme, shown) {
			t.Errorf("the README does not show %s", shown)
		}
	}
	asWelcome := func(command string) *typedCommand {
		return typedIn(t, ".", append(os.Environ(), role+"=sidekeeper"), "bash", "-c", export+"; exec "+os.Args[0]+" "+command)
	}
	first := asWelcome(run)
	token := said(t, first.reads(t, "mine, with token"), `token (\d+)`)
	second := asWelcome(run)
	asWelcome(strings.Replace(end, "TOKEN", token, 1)).reads(t, "ended by its sidecar")
	first.reads(t, "LOCK_BROKEN")
	second.reads(t, "mine, with token")
	expire := said(t, next, `(grpcurl .* sidekeeper\.dev\.v1\.DevService/ExpireLease)`)
	typed(t, filepath.Join(buildGrpcurl(t), "grpcurl"), expire).reads(t, `"expired": 1`)
	second.reads(t, "LEASE_LOST")
}

// document is the text of a document of the repository.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDevServesAConsoleWhoseURLTheWelcomeHas(t *testing.T) {
	t.Parallel()
	s, welcome := develop(t, "--console-listen=127.0.0.1:0")
	page, token, _ := strings.Cut(said(t, welcome, `console: +(http://127\.0\.0\.1:\d+/#token=\w+)\n`), "#token=")
	held := start(t, s.address, "lock", "run", "orders", "--", os.Args[0], "polite")
	held.wantLine(t, "ready")
	for authorization, want := range map[string]string{"Bearer " + token: `"orders"`, "Bearer X": "token"} {
		list := page + "api/sidekeeper.lock.v1.LockService/List"
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, list, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Authorization": {authorization}, "Content-Type": {"application/json"}}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, %v, want %s", authorization, text, err, want)
		}
	}
	s.signal(syscall.SIGINT)
	if code := s.ends(); code != 0 {
		t.Errorf("exit %d; log: %s", code, s.log)
	}
}

// The scene of the quick start, to the letter but for the port.
func TestTheSceneOfTheQuickStartFromGrpcurl(t *testing.T) {
	t.Parallel()
	s, _ := develop(t)
	shown := func(method string) string {
		command := said(t, document(t, "docs/quickstart.md"), `(grpcurl .* `+method+`)\n`)
		return strings.Replace(command, "127.0.0.1:7181", s.address, 1)
	}
	acquire, expire := shown("sidekeeper.lock.v1.LockService/Acquire"), shown("sidekeeper.dev.v1.DevService/ExpireLease")
	program := filepath.Join(buildGrpcurl(t), "grpcurl")
	first, second := typed(t, program, acquire), typed(t, program, acquire)
	// Who of the two was first is the system's affair.
	if text := first.reads(t, `"(?:queued|granted)"`); strings.Contains(text, "queued") {
		first, second = second, first
	}
	first.reads(t, `"granted"`)
	second.reads(t, `"queued"`)
	typed(t, program, expire).reads(t, `"expired": 1`)
	text := first.reads(t, `(?s)Code: Aborted.*LEASE_LOST.*"reason": "LEASE_LOST"`)
	if !strings.Contains(text, `"fencingToken"`) {
		t.Errorf("the first saw %s", text)
	}
	second.reads(t, `"granted"`)
	if err := second.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	typed(t, program, acquire).reads(t, `"granted"`)
}

// buildGrpcurl returns the folder with grpcurl in it.
func buildGrpcurl(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	build := exec.Command("go", "build", "-modfile=../../tools/grpcurl/go.mod", "-o", folder, "github.com/fullstorydev/grpcurl/cmd/grpcurl")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return folder
}

// A typed command is one that somebody has typed in a terminal.
type typedCommand struct {
	command *exec.Cmd
	lines   chan string
	seen    string
}

// typed runs a command that begins with the name of the program.
func typed(t *testing.T, program, command string) *typedCommand {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(command, "'", "")) // none has a blank in it
	return typedIn(t, ".", nil, program, words[1:]...)
}

// typedIn runs a program in a folder and an environment, which is this process's if it is nil.
func typedIn(t *testing.T, folder string, environ []string, program string, args ...string) *typedCommand {
	t.Helper()
	c := &typedCommand{command: exec.Command(program, args...), lines: make(chan string, 1000)}
	c.command.Dir, c.command.Env = folder, environ
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.command.Stdout, c.command.Stderr = writer, writer
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.lines)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = c.command.Process.Kill()
		_ = c.command.Wait()
		<-read
		reader.Close()
	})
	return c
}

// reads waits until the command has said something like it, and returns all that it has said.
func (c *typedCommand) reads(t *testing.T, pattern string) string {
	t.Helper()
	for wanted := regexp.MustCompile(pattern); !wanted.MatchString(c.seen); {
		line, ok := "", false
		select {
		case line, ok = <-c.lines:
		case <-time.After(patience):
		}
		if !ok {
			t.Fatalf("nothing like %s in:\n%s", pattern, c.seen)
		}
		c.seen += line + "\n"
	}
	return c.seen
}

func (s *served) expire(t *testing.T, lock string) {
	t.Helper()
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_, err = devv1.NewDevServiceClient(connection).ExpireLease(t.Context(),
		&devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_Lock{Lock: lock}})
	if err != nil {
		t.Fatal(err)
	}
}
