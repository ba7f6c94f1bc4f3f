package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// A sidecar is a process of its own, which serves a Unix socket.
type sidecar struct {
	command *exec.Cmd
	socket  string
	log     string
	admin   string // where profiles are served
}

const (
	startPatience = 20 * time.Second
	stopPatience  = 30 * time.Second
)

// startSidecar returns when the sidecar serves. It logs as it does by default, into a file. All callers have one identity, so that there is no
// limit to what it may do in a second.
func startSidecar(ctx context.Context, program, directory string, flags []string) (*sidecar, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	admin, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &sidecar{socket: filepath.Join(directory, "callers.sock"), log: filepath.Join(directory, "log"), admin: admin}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.command = exec.Command(program, append([]string{
		"serve", "--listen", "unix://" + s.socket + "?identity=bench", "--operator-listen", "", "--admin-listen", admin,
		"--drain-timeout", "1s", "--max-connections", "4000",
	}, flags...)...)
	s.command.Stderr = log
	s.command.SysProcAttr = attributes()
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	if err := s.awaitServing(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// freeAddress is one of the loopback interface that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// awaitServing waits until profiles are served; the callers' socket is open before, and whoever calls is then waited for.
func (s *sidecar) awaitServing(ctx context.Context) error {
	for {
		if _, err := s.get(ctx, "cmdline"); err == nil {
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			log, _ := os.ReadFile(s.log)
			return fmt.Errorf("sidecar does not serve: %w\n%s", err, log)
		}
	}
}

// stop ends the process, and kills it if it does not end.
func (s *sidecar) stop() {
	late := time.AfterFunc(stopPatience, func() { s.command.Process.Kill() })
	defer late.Stop()
	s.command.Process.Signal(syscall.SIGTERM)
	s.command.Wait() // how it ended is in its log
}

// dial opens a connection to the sidecar. The caller must close it.
func (s *sidecar) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+s.socket, staticWindows()...)
}

// staticWindows have a caller send no PING with each answer to find out how much fits on the way, as the clients have it. Callers of etcd are
// given the same.
func staticWindows() []grpc.DialOption {
	const window = 1 << 20
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
	}
}

func (s *sidecar) processor() (time.Duration, error) { return processorTime(s.command.Process.Pid) }

// resident is the bytes of memory the process occupies.
func (s *sidecar) resident() (int64, error) { return s.status("VmRSS:") }

// peak is the most bytes of memory the process has occupied so far.
func (s *sidecar) peak() (int64, error) { return s.status("VmHWM:") }

func (s *sidecar) status(field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == field {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in the status of process %d", field, s.command.Process.Pid)
}

// get asks the sidecar for a profile.
func (s *sidecar) get(ctx context.Context, query string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/debug/pprof/"+query, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// memory is a line of what the sidecar's runtime says of its memory after it has collected its garbage, such as HeapInuse.
func (s *sidecar) memory(ctx context.Context, names ...string) (map[string]int64, error) {
	text, err := s.get(ctx, "heap?gc=1&debug=1")
	if err != nil {
		return nil, err
	}
	values := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(line, "# "))
		if len(fields) < 3 || fields[1] != "=" {
			continue
		}
		if value, err := strconv.ParseInt(fields[2], 10, 64); err == nil {
			values[fields[0]] = value
		}
	}
	for _, name := range names {
		if _, found := values[name]; !found {
			return nil, fmt.Errorf("the sidecar's heap profile says nothing of %s", name)
		}
	}
	return values, nil
}
