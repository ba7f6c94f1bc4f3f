package stage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/support/link"
	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// A Host is a sidecar, the clients beside it, and its ways to the ensemble.
type Host struct {
	Number    int
	ToServers []*link.Link // between the sidecar and each server, by the servers' ids less one
	Calls     *link.Link   // between the sidecar and those clients that call it over TCP
	Lending   *link.Link   // between the sidecar and those connections over which leases are opened that others hold with
	Borrowing *link.Link   // between the sidecar and the others
	Names     *NameServer  // that the sidecar asks; nil if it has addresses

	stage     *Stage
	directory string

	hearing sync.RWMutex // is taken for writing while the sidecar's log is not read

	mu          sync.Mutex
	sidecar     *process.Process // the last one started; nil before the first
	metrics     string           // where it serves its metrics
	credentials string           // that the next one shows to the ensemble
	wrapper     []string         // of the next one's command
	slept       time.Duration
}

func newHost(s *Stage, number int) (*Host, error) {
	h := &Host{Number: number, stage: s, credentials: s.options.Credentials, directory: filepath.Join(s.directory, fmt.Sprint("host-", number))}
	if err := os.Mkdir(h.directory, 0o700); err != nil {
		return nil, err
	}
	if err := h.Sleep(0); err != nil {
		return nil, err
	}
	if s.options.Disk != "" {
		if err := h.mountDisk(); err != nil {
			return nil, err
		}
	}
	if s.options.Names {
		if err := h.nameServers(); err != nil {
			return nil, err
		}
	}
	for _, server := range s.Ensemble.Servers() {
		way, err := link.New(link.Options{Target: server.RealAddress(), ZooKeeper: true})
		if err != nil {
			return nil, err
		}
		h.ToServers = append(h.ToServers, way)
	}
	for _, calls := range []**link.Link{&h.Calls, &h.Lending, &h.Borrowing} {
		way, err := link.New(link.Options{HTTP2: true})
		if err != nil {
			return nil, err
		}
		*calls = way
	}
	return h, nil
}

// calls are the ways between the sidecar and those who call it over TCP.
func (h *Host) calls() []*link.Link { return []*link.Link{h.Calls, h.Lending, h.Borrowing} }

func (h *Host) close() {
	if h.stage.options.Disk != "" {
		h.unmountDisk()
	}
	if h.Names != nil {
		h.Names.close()
	}
	for _, way := range h.ToServers {
		way.Close()
	}
	for _, way := range h.calls() {
		way.Close()
	}
}

// Target is the name of the sidecar as a target of faults.
func (h *Host) Target() string { return target("sidecar", h.Number) }

// Address is where the sidecar listens for clients that are beside it.
func (h *Host) Address() string { return "unix://" + filepath.Join(h.directory, "callers") }

// Operators is where it listens for operators.
func (h *Host) Operators() string { return "unix://" + filepath.Join(h.directory, "operators") }

// Servers is where the host reaches the ensemble.
func (h *Host) Servers() []string {
	addresses := make([]string, 0, len(h.ToServers))
	for _, way := range h.ToServers {
		addresses = append(addresses, way.Address())
	}
	return addresses
}

// startPatience is how long a sidecar may take to listen.
const startPatience = 30 * time.Second

// Start starts the sidecar, and returns when it listens.
func (h *Host) Start() error {
	said := newAnnouncements()
	started, metrics, err := h.launch(said)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.sidecar, h.metrics = started, metrics
	h.mu.Unlock()
	addresses, err := said.await(listeners, startPatience, started.Exited())
	if err != nil {
		return fmt.Errorf("%s: %w", h.Target(), err)
	}
	for _, way := range h.calls() {
		way.SetTarget(addresses[1])
	}
	return nil
}

// listeners is how many addresses a sidecar says that it listens on for callers: its socket, and a port.
const listeners = 2

// launch starts the program. Addresses that only this process needs are chosen by it.
func (h *Host) launch(said io.Writer) (started *process.Process, metrics string, err error) {
	metrics, err = freeAddress()
	if err != nil {
		return nil, "", err
	}
	log, err := h.readLog()
	if err != nil {
		return nil, "", err
	}
	arguments, err := h.command("--metrics-listen=" + metrics)
	if err != nil {
		log.Close()
		return nil, "", err
	}
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Stdout, command.Stderr = said, log.File
	command.Env = append(os.Environ(), "SIDEKEEPER_TEST_SLEPT="+h.sleptPath(), "SIDEKEEPER_TEST_WALL_AHEAD="+h.ahead().String())
	started, err = h.stage.nursery.Start(command, log)
	return started, metrics, err
}

// freeAddress is one of the loopback interface that nobody listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (h *Host) logPath() string {
	return filepath.Join(h.stage.play.Folder, fmt.Sprintf("sidecar-%d.log", h.Number))
}

func (h *Host) flags() []string {
	ensemble := h.stage.options.Ensemble
	flags := []string{
		"serve",
		"--listen=" + h.Address(), "--listen=127.0.0.1:0",
		"--operator-listen=" + h.Operators(),
		"--zookeeper=" + strings.Join(h.given(), ","),
		"--tick-time=" + ensemble.TickTime.String(),
		fmt.Sprint("--sync-limit=", ensemble.SyncLimit),
		"--session-timeout=" + h.stage.play.Timeout.String(),
	}
	if h.stage.play.Resuming {
		flags = append(flags, "--state-dir="+h.stateDirectory())
	}
	if h.stage.options.Disk == AuditDisk {
		flags = append(flags, "--audit-log="+h.auditLog())
	}
	if h.HandsOver() {
		flags = append(flags, "--sigterm=handover")
	}
	return append(flags, h.stage.options.Flags...)
}

// HandsOver says whether the sidecar leaves leases to the next one when it is asked to end: two of three do, if any can.
func (h *Host) HandsOver() bool { return h.stage.play.Resuming && h.Number%2 == 1 }

// command is what starts the sidecar.
func (h *Host) command(more ...string) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	arguments := append(slices.Concat(h.wrapper, h.asking()), h.stage.options.Sidecar)
	arguments = append(append(arguments, h.flags()...), more...)
	if h.credentials == "" {
		return arguments, nil
	}
	path := filepath.Join(h.directory, "credentials")
	return append(arguments, "--zookeeper-auth-file="+path), os.WriteFile(path, []byte(h.credentials+"\n"), 0o600)
}

// Pretend has the sidecars that are started from now on show other credentials to the ensemble, until Own.
func (h *Host) Pretend(credentials string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.credentials = credentials
}

// Wrap puts something in front of the commands that start sidecars from now on, until Own.
func (h *Host) Wrap(command ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrapper = command
}

// Own ends Pretend and Wrap.
func (h *Host) Own() {
	h.Pretend(h.stage.options.Credentials)
	h.Wrap()
}

// Process is the number of the sidecar's process.
func (h *Host) Process() int { return h.current().ID() }

// AwaitReady returns when the sidecar reaches the ensemble.
func (h *Host) AwaitReady(ctx context.Context) error {
	client, err := sidekeeper.Dial(h.Address())
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		ready, err := client.Ready(ctx)
		if err == nil && ready {
			return nil
		}
		if !Pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("%s does not reach the ensemble: %w", h.Target(), errors.Join(context.Cause(ctx), err))
		}
	}
}

// Restart ends the sidecar, at once or in order, and starts another after a while. It notes if that listens so soon that it costs no lease
// that can be resumed.
func (h *Host) Restart(ctx context.Context, inOrder bool, away time.Duration) error {
	alive := history.Now()
	if inOrder {
		h.current().End(syscall.SIGTERM)
	}
	over := history.Now()
	h.Kill()
	Pause(ctx, away)
	if err := h.Start(); err != nil {
		return err
	}
	kept := h.HandsOver() || h.stage.play.Resuming && !inOrder
	if kept && history.Now().Since(over) < h.stage.play.Timeout/3 {
		h.stage.Note(history.Event{Kind: history.Restarted, Target: h.Target(), From: alive})
	}
	return h.AwaitReady(ctx)
}

// Double starts another sidecar in the place of one that is frozen, notes whether it serves, and ends it.
func (h *Host) Double() error {
	said := newAnnouncements()
	second, _, err := h.launch(said)
	if err != nil {
		return err
	}
	event := history.Event{Kind: history.Doubled, Target: h.Target(), Outcome: history.OK}
	if _, refused := said.await(listeners, startPatience, second.Exited()); refused != nil {
		event.Outcome = history.Denied
	}
	second.Kill()
	h.stage.Note(event)
	return nil
}

// Kill ends the sidecar at once.
func (h *Host) Kill() {
	h.current().Kill()
	h.stage.Note(history.Event{Kind: history.Killed, Target: h.Target()})
}

// Stop asks the sidecar to end, and returns when it has.
func (h *Host) Stop() {
	h.current().End(syscall.SIGTERM)
	h.stage.Note(history.Event{Kind: history.Killed, Target: h.Target()})
}

// Freeze suspends the sidecar until Continue.
func (h *Host) Freeze() { h.current().Freeze() }

// Continue ends Freeze.
func (h *Host) Continue() { h.current().Continue() }

// Sleep has the clock of the sidecar, if that is Options.Sleeper, go ahead by so much more than before, and its timers not.
func (h *Host) Sleep(d time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slept += d
	file, err := os.OpenFile(h.sleptPath(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(binary.LittleEndian.AppendUint64(nil, uint64(h.slept)))
	return err
}

// ahead is by how much the sidecar's wall clock is ahead.
func (h *Host) ahead() time.Duration {
	return map[int]time.Duration{1: h.stage.options.Ahead, 2: -h.stage.options.Ahead}[h.Number]
}

func (h *Host) sleptPath() string { return filepath.Join(h.directory, "slept") }

// Pin leaves the sidecar one server that it can reach.
func (h *Host) Pin(server int) {
	for i, way := range h.ToServers {
		if i+1 != server {
			way.Refuse()
			way.Reset()
		}
	}
}

// Heal heals all links of the host. Connections that have lost bytes are reset, as TCP would in the end.
func (h *Host) Heal() {
	for _, way := range append(h.calls(), h.ToServers...) {
		way.Heal()
		way.Delay(0, 0)
		way.Slice(0)
		way.CutIdle(0)
		_ = way.Lose(0) // which always can be done
		way.ResetDead()
	}
}

func (h *Host) repair(ctx context.Context) error {
	h.Heal()
	h.Continue()
	if !h.current().Running() {
		if err := h.Start(); err != nil {
			return err
		}
	}
	return h.AwaitReady(ctx)
}

func (h *Host) current() *process.Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sidecar
}

// Pause waits for a while, and says whether to go on.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
