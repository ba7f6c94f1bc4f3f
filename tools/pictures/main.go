// Package main takes the pictures of docs/operations.md and docs/console.md: of the page on the admin listener, of the console and of
// `sidekeeper top`, all of a real sidecar at which something goes on; and it records, for docs/fencing.md, how a holder is frozen. It fails if the
// page is not what it should be: it must show what callers call themselves as text, run no script of theirs, and ask nobody but the sidecar. It takes
// Chromium, `script` for a terminal, and the environment of `make python`. Its tests drive the console in the browser, by `make browser`; CI takes no
// pictures.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	play := flag.Duration("play", 2*time.Minute, "how long callers come and go before the console's pictures are taken: what its charts show")
	flag.Parse()
	if err := run(ctx, "bin/sidekeeper", "docs/pictures", *play); err != nil {
		log.Fatal(err)
	}
}

// hostile is what one of the callers calls itself.
const hostile = `<script>document.title="owned"</script><img src=x>`

func run(ctx context.Context, program, folder string, play time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute+play)
	defer cancel()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := record(ctx, program, folder); err != nil {
		return err
	}
	scene, err := begin(ctx, program)
	if err != nil {
		return err
	}
	defer scene.end()
	console, err := scene.console(ctx)
	if err != nil {
		return err
	}
	if err := scene.play(ctx); err != nil {
		return err
	}
	text, err := scene.top(ctx)
	if err != nil {
		return err
	}
	if err := scene.busy(ctx, play); err != nil {
		return err
	}
	return photograph(ctx, "http://"+scene.admin+"/", console, text, folder)
}

// A scene is a sidecar and the callers that use it.
type scene struct {
	program, address, admin string
	cancel                  context.CancelFunc
	commands                []*exec.Cmd
	client                  *sidekeeper.Client // nil until callers come and go
}

var (
	adminLine   = regexp.MustCompile(`page: +http://([\d.:]+)/`)
	addressLine = regexp.MustCompile(`callers: .*, ([\d.:]+)$`)
)

// begin starts a sidecar and returns when it has said where it is.
func begin(ctx context.Context, program string) (*scene, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &scene{program: program, cancel: cancel}
	command := exec.CommandContext(ctx, program, "dev", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--session-timeout=15s")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	s.commands = append(s.commands, command)
	lines := bufio.NewScanner(out)
	for (s.address == "" || s.admin == "") && lines.Scan() {
		if found := addressLine.FindStringSubmatch(lines.Text()); found != nil {
			s.address = found[1]
		}
		if found := adminLine.FindStringSubmatch(lines.Text()); found != nil {
			s.admin = found[1]
		}
	}
	if s.admin == "" {
		s.end()
		return nil, errors.New("the sidecar does not say where its page is")
	}
	go io.Copy(io.Discard, out)
	return s, nil
}

func (s *scene) end() {
	if s.client != nil {
		_ = s.client.Close()
	}
	for _, command := range s.commands[1:] {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	}
	s.cancel()
	_ = s.commands[0].Wait()
}

// caller runs one more command that stays.
func (s *scene) caller(args ...string) error {
	command := exec.Command(s.program, append([]string{"--address", s.address}, args...)...)
	if err := command.Start(); err != nil {
		return err
	}
	s.commands = append(s.commands, command)
	return nil
}

// play has callers hold locks and wait for them, one of which is lost, and waits until the sidecar shows them.
func (s *scene) play(ctx context.Context) error {
	wait := "7200"
	lost := exec.CommandContext(ctx, s.program, "--address", s.address, "lock", "run", "reports/nightly", "--owner", "reporter", "--", "sleep", wait)
	if err := lost.Start(); err != nil {
		return err
	}
	if err := s.shows(ctx, "reports/nightly"); err != nil {
		return err
	}
	expire := exec.CommandContext(ctx, "go", "tool", "-modfile=tools/grpcurl/go.mod", "grpcurl", "-plaintext", "-d",
		`{"lock":"reports/nightly"}`, s.address, "sidekeeper.dev.v1.DevService/ExpireLease")
	if out, err := expire.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	_ = lost.Wait() // it says that its lock was lost
	for _, caller := range [][]string{
		{"lock", "run", "orders", "--owner", "billing", "--", "sleep", wait},
		{"lock", "run", "invoices/2026", "--owner", hostile, "--", "sleep", wait},
		{"lock", "run", "stock", "--owner", "warehouse-7", "--", "sleep", wait},
		{"members", "join", "web", "web-1", "--owner", "web-1.shop", "--", "sleep", wait},
		{"members", "join", "web", "web-2", "--owner", "web-2.shop", "--", "sleep", wait},
	} {
		if err := s.caller(caller...); err != nil {
			return err
		}
	}
	if err := s.shows(ctx, `"holds":3`, `"members":2`); err != nil {
		return err
	}
	for _, owner := range []string{"billing-standby", "shipping"} {
		if err := s.caller("lock", "run", "orders", "--owner", owner, "--", "sleep", wait); err != nil {
			return err
		}
	}
	return s.shows(ctx, `"waiters":2`)
}

// console starts the console, and returns its address.
func (s *scene) console(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, s.program, "console", "--address", s.address, "--admin", s.admin)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return "", err
	}
	s.commands = append(s.commands, command)
	address, err := bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(address), err
}

// shows waits until the state has these words.
func (s *scene) shows(ctx context.Context, words ...string) error {
	for ctx.Err() == nil {
		out, err := exec.CommandContext(ctx, s.program, "top", "--admin", s.admin, "-o", "json").Output()
		if err != nil {
			return err
		}
		found := true
		for _, word := range words {
			found = found && strings.Contains(string(out), word)
		}
		if found {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("the state never has %q", words)
}

// top is what `sidekeeper top` writes to a terminal of 118 places and 34 lines, as it stands after some seconds.
func (s *scene) top(ctx context.Context) (string, error) {
	folder, err := os.MkdirTemp("", "pictures-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	written := filepath.Join(folder, "written")
	shell := fmt.Sprintf("stty cols 118 rows 34; exec timeout -s INT 6 %s top --admin %s", s.program, s.admin)
	if out, err := exec.CommandContext(ctx, "script", "-qec", shell, written).CombinedOutput(); err != nil && len(out) == 0 {
		return "", err
	}
	text, err := os.ReadFile(written)
	return string(text), err
}
