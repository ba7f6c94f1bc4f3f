package doctor_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/sidekeeper/sidekeeper/internal/doctor"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/full"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A patient is an ensemble in memory, reached as a real one is.
type patient struct {
	*testing.T
	memory *standin.Ensemble
	client *zookeeper.Client
	doctor.Settings
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	return newPatientOf(t, 200*time.Millisecond)
}

// newPatientOf has sessions that last for twenty ticks.
func newPatientOf(t *testing.T, tick time.Duration) *patient {
	t.Helper()
	memory := standin.New(standin.Options{Tick: tick})
	t.Cleanup(memory.Close)
	server, err := embedded.Serve(memory.Ensemble, embedded.ServerOptions{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	p := &patient{T: t, memory: memory, Settings: settingsFor(server.Address())}
	p.TickTime, p.SessionTimeout = tick, 20*tick
	p.client = connect(t, p.Settings)
	for _, path := range []string{"/sidekeeper", "/sidekeeper/locks"} {
		p.make(path, embedded.Persistent)
	}
	return p
}

func settingsFor(servers ...string) doctor.Settings {
	return doctor.Settings{
		Servers: servers, SessionTimeout: 4 * time.Second, TickTime: 200 * time.Millisecond, SyncLimit: 5, MostLeases: 50,
		Root: "/sidekeeper", LockRoot: "/sidekeeper/locks",
	}
}

func connect(t *testing.T, s doctor.Settings) *zookeeper.Client {
	t.Helper()
	client, err := zookeeper.New(zookeeper.Config{
		Servers: s.Servers, SessionTimeout: s.SessionTimeout, TickTime: s.TickTime, SyncLimit: s.SyncLimit, Heartbeat: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func (p *patient) make(path string, mode embedded.Mode) string {
	p.Helper()
	owner := int64(0)
	if mode == embedded.Ephemeral || mode == embedded.EphemeralSequential {
		owner = p.session()
	}
	made, err := p.memory.Create(path, []byte("x"), mode, owner)
	if err != nil {
		p.Fatal(err)
	}
	return made
}

// session is one that lives as long as the test.
func (p *patient) session() int64 {
	session := p.memory.OpenSession(10 * time.Second)
	p.Cleanup(func() { session.Close(p.Context()) })
	return session.ID()
}

// says is what the examination finds, one line each: severity, what it is about, and the first words.
func (p *patient) says(locks ...string) []string {
	p.Helper()
	findings, err := doctor.Examine(p.Context(), p.client, p.Settings, locks)
	if err != nil {
		p.Fatal(err)
	}
	return lines(findings)
}

func lines(findings []doctor.Finding) (lines []string) {
	for _, f := range findings {
		if f.About == "ensemble" && strings.Contains(f.Text, "`conf`") || isOpenNodes(f) {
			continue // an ensemble in memory does not answer it; nearly no test has credentials
		}
		words := strings.Fields(f.Text)
		lines = append(lines, fmt.Sprintf("%v %s: %s", f.Severity, f.About, strings.Join(words[:min(len(words), 5)], " ")))
	}
	return lines
}

func isOpenNodes(f doctor.Finding) bool {
	return strings.HasPrefix(f.Text, "the sidecar has no credentials")
}

func TestNodesThatAreOpenAreToldToWhoAsksAndBeforeASidecarServes(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	examined, err := doctor.Examine(t.Context(), p.client, p.Settings, nil)
	if err != nil || !slices.ContainsFunc(examined, isOpenNodes) {
		t.Errorf("%v, %v", examined, err)
	}
	before, err := doctor.Preflight(t.Context(), p.client, p.Settings)
	if err != nil || !slices.ContainsFunc(before, isOpenNodes) {
		t.Errorf("%v, %v", before, err)
	}
}

func TestLocksAreExamined(t *testing.T) {
	t.Parallel()
	const orders = "/sidekeeper/locks/orders"
	mixed := []string{"problem " + orders + ": contenders that ignore each other,"}
	for _, c := range []struct {
		name  string
		nodes []string // in the lock's directory; * before one that is not ephemeral
		want  []string
	}{
		{"in use", []string{"_c_1-lock-0000000001", "_c_2-lock-0000000002"}, nil},
		{"a read/write lock", []string{"_c_1-__READ__0000000001", "_c_2-__WRIT__0000000002"}, nil},
		{"kazoo among others", []string{"_c_1-lock-0000000001", "1__lock__0000000002"}, mixed},
		{"ZooKeeper's WriteLock", []string{"_c_1-lock-0000000001", "x-72057594037927936-0000000002", "lock-7-0000000003"}, nil},
		{"the manual's readers among others", []string{"read-0000000001", "_c_2-__WRIT__0000000002"}, mixed},
		{"mutexes on a read/write lock", []string{"_c_1-lock-0000000001", "_c_2-__WRIT__0000000002"}, mixed},
		{"a stranger", []string{"_c_1-lock-0000000001", "readme"}, []string{"warning " + orders + ": children that are not contenders:"}},
		{"an owner that never goes", []string{"*_c_1-lock-0000000001"}, []string{
			"problem " + orders + "/_c_1-lock-0000000001: is not ephemeral: it blocks",
		}},
		{"a counter at its end", []string{"_c_1-lock--2147483647"}, []string{"problem " + orders + ": its counter is exhausted: clients"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.make(orders, embedded.Container)
			for _, node := range c.nodes {
				name, persistent := strings.CutPrefix(node, "*")
				mode := embedded.Ephemeral
				if persistent {
					mode = embedded.Persistent
				}
				p.make(orders+"/"+name, mode)
			}
			if diff := cmp.Diff(c.want, p.says()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.want, p.says(orders)); diff != "" {
				t.Errorf("by its name: %s", diff)
			}
		})
	}
}

func TestEmptyDirectoriesThatStayAreTold(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.make("/sidekeeper/locks/stays", embedded.Persistent)
	if diff := cmp.Diff([]string{"note /sidekeeper/locks: 1 directories of locks are"}, p.says()); diff != "" {
		t.Error(diff)
	}
	p.RecheckAfter = 10 * time.Millisecond
	if diff := cmp.Diff([]string{"warning /sidekeeper/locks/stays: is empty and not a"}, p.says()); diff != "" {
		t.Error(diff)
	}
}

func TestADirectoryThatStaysForADelayIsTold(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	lock := recipes.Lock{Path: "/sidekeeper/locks/printer"}
	if err := lock.Keep(t.Context(), p.memory.NewReader()); err != nil {
		t.Fatal(err)
	}
	p.RecheckAfter = 10 * time.Millisecond
	if diff := cmp.Diff([]string{"note /sidekeeper/locks/printer: is empty, and remains since"}, p.says()); diff != "" {
		t.Error(diff)
	}
}

func TestADirectoryThatOnlySaysOfADelayIsNotTakenForOneThatStaysForIt(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.make("/sidekeeper/locks/printer", embedded.Persistent)
	if _, err := p.memory.NewReader().Commit(t.Context(), recipes.Set("/sidekeeper/locks/printer", []byte("free:7"), -1)); err != nil {
		t.Fatal(err)
	}
	p.RecheckAfter = 10 * time.Millisecond
	if diff := cmp.Diff([]string{"warning /sidekeeper/locks/printer: is empty and not a"}, p.says()); diff != "" {
		t.Error(diff)
	}
}

func TestAnEnsembleWhoseTokensWereLargerIsTold(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.RememberedToken = 1
	if diff := cmp.Diff([]string(nil), p.says()); diff != "" {
		t.Error(diff)
	}
	p.RememberedToken = 7<<32 + 5
	if diff := cmp.Diff([]string{"problem ensemble: was restored from an older"}, p.says()); diff != "" {
		t.Error(diff)
	}
}

func TestDirectoriesOfManyNamesAreTold(t *testing.T) {
	t.Parallel()
	p := newPatientOf(t, 3*time.Second) // long lists take their time on a busy machine
	p.Directories = []string{"/sidekeeper", "/sidekeeper/sequences", "/sidekeeper/groups"}
	p.make("/sidekeeper/groups", embedded.Persistent)
	p.make("/sidekeeper/sequences", embedded.Persistent)
	p.make("/sidekeeper/sequences/few", embedded.Persistent)
	for _, c := range []struct{ directory, want string }{
		{"/sidekeeper/groups", "warning /sidekeeper/groups: has 5400 names of 1101600"},
		{"/sidekeeper/sequences/few", "warning /sidekeeper/sequences/few: has 5400 names of 1101600"},
	} {
		for i := range 5400 {
			p.make(fmt.Sprintf("%s/%0200d", c.directory, i), embedded.Persistent)
		}
		told := slices.DeleteFunc(p.says(), func(line string) bool { return line != c.want })
		if len(told) != 1 {
			t.Errorf("%q, not %q once", told, c.want)
		}
	}
}

func TestAServerThatIsNotThereIsTold(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.Servers = append(p.Servers, "127.0.0.1:1")
	if diff := cmp.Diff([]string{"problem 127.0.0.1:1: does not answer: dial tcp"}, p.says()); diff != "" {
		t.Error(diff)
	}
}

// A process that is stopped goes on to take connections: the kernel does that.
func TestAServerThatHangsIsToldAndIsToStay(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { frozen.Close() })
	hangs, healthy := frozen.Addr().String(), p.Servers[0]
	p.Servers = []string{hangs, healthy}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // it is over while the first server is asked
	defer cancel()
	findings, err := doctor.Examine(ctx, p.client, p.Settings, nil)
	want := []string{"problem " + hangs + ": hangs: it has taken a", "note " + healthy + ": was not asked: the time"}
	if diff := cmp.Diff(want, lines(findings)); diff != "" || err == nil {
		t.Errorf("%v, %s", err, diff)
	}
	if len(findings) == 0 || !strings.HasSuffix(findings[0].Advice, "leave it in --zookeeper") {
		t.Errorf("%v", findings)
	}
	if !slices.IsSortedFunc(findings, func(a, b doctor.Finding) int { return int(b.Severity) - int(a.Severity) }) {
		t.Errorf("the most severe is not first: %v", findings)
	}
}

func TestWhatListensInAServersPlaceIsTold(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(page.Close)
	secret := httptest.NewTLSServer(http.NotFoundHandler())
	secret.Close() // its certificate is what is taken
	sidecar := grpc.NewServer()
	overTLS := grpc.NewServer(grpc.Creds(credentials.NewTLS(secret.TLS)))
	wants := map[string]string{page.Listener.Addr().String(): "is an HTTP server, not"}
	for server, want := range map[*grpc.Server]string{sidecar: "is a gRPC server, such", overTLS: "answers over TLS alone"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		wants[listener.Addr().String()] = want
		t.Cleanup(server.Stop)
		go func() { _ = server.Serve(listener) }()
	}
	for where, want := range wants {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.Servers = append(p.Servers, where)
			told := p.says()
			if len(told) != 1 || !strings.HasPrefix(told[0], "problem "+where+": "+want) {
				t.Errorf("%q", told)
			}
		})
	}
}

func TestAServerWithoutTLSWhereItIsDemandedIsTold(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	client, err := zookeeper.New(zookeeper.Config{
		Servers: p.Servers, SessionTimeout: p.SessionTimeout, TickTime: p.TickTime, SyncLimit: p.SyncLimit, Heartbeat: time.Second,
		TLS: func() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p.Secure = true
	findings, err := doctor.Examine(t.Context(), client, p.Settings, nil)
	want := []string{"problem " + p.Servers[0] + ": answers without TLS, which --zookeeper-tls-ca"}
	if diff := cmp.Diff(want, lines(findings)); diff != "" || err == nil {
		t.Errorf("%v, %s", err, diff)
	}
}

func TestWhetherTheServersCanBeFollowedIsTold(t *testing.T) {
	t.Parallel()
	const version = "\nversion=100000000"
	for name, c := range map[string]struct {
		list   string // with A for the server's address
		follow bool
		want   string
	}{
		"as a standalone server has it": {"", true, ""},
		"all listed":                    {"server.1=zk1:2888:3888:participant;A" + version, true, ""},
		"more than are given":           {"server.1=zk1:1:2;A\nserver.2=zk2:1:2;3\nserver.3=zk3:1:2;3" + version, true, ""},
		"more, and not followed": {
			"server.1=zk1:1:2;A\nserver.2=zk2:1:2;3\nserver.3=zk3:1:2;3" + version, false, "note --zookeeper: 1 of 3 servers are",
		},
		"by another name": {"server.1=zk1:2888:3888:participant;2181" + version, true, "note --zookeeper: A: the ensemble lists zk1:2181"},
		"without an address for clients": {
			"server.1=zk1:2888:3888:participant" + version, true, "note --follow-ensemble: only the servers of --zookeeper",
		},
		"malformed":               {"<html>", true, "warning --follow-ensemble: only the servers of --zookeeper"},
		"malformed, not followed": {"<html>", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.FollowServers = c.follow
			if err := p.memory.Set(zookeeper.ConfigPath, []byte(strings.ReplaceAll(c.list, "A", p.Servers[0]))); err != nil {
				t.Fatal(err)
			}
			if got := strings.ReplaceAll(strings.Join(p.says(), "\n"), p.Servers[0], "A"); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
		})
	}
	t.Run("that may not be read", func(t *testing.T) {
		t.Parallel()
		p := newPatient(t)
		p.FollowServers = true
		if err := p.memory.Deny(zookeeper.ConfigPath, true); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(p.says(), "\n"), "note --follow-ensemble: only the servers of --zookeeper"; got != want {
			t.Errorf("%s, not %s", got, want)
		}
	})
}

func TestCredentialsWithoutSecrecyAndAnOpenRootAreTold(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.Credentials = true
	want := []string{
		"warning --zookeeper-auth-file: the password is sent in",
		"warning /sidekeeper: every client may change it",
		"warning /sidekeeper/locks: every client may change it",
		"warning /zookeeper/quota: every client may change it",
	}
	if diff := cmp.Diff(want, p.says()); diff != "" {
		t.Error(diff)
	}
}

// An impostor has all servers tell of one id.
type impostor struct{ *zookeeper.Client }

func (i impostor) Ask(ctx context.Context, server, word string) (string, error) {
	answer, err := i.Client.Ask(ctx, server, word)
	return strings.ReplaceAll(answer, "serverId=0", "serverId=3"), err
}

func TestServersWithOneIDAreTold(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	other, err := embedded.Serve(p.memory.Ensemble, embedded.ServerOptions{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	p.Servers = append(p.Servers, other.Address())
	findings, err := doctor.Examine(t.Context(), impostor{p.client}, p.Settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "has the id 3, as " + p.Servers[0] + " has: sidecars may take sessions of one for sessions of the other"
	if !slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.About == other.Address() && f.Text == want }) {
		t.Errorf("%v", lines(findings))
	}
}

func TestAnEnsembleThatDoesNotAnswerIsAnError(t *testing.T) {
	t.Parallel()
	settings := settingsFor("127.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	findings, err := doctor.Examine(ctx, connect(t, settings), settings, nil)
	if err == nil || len(findings) == 0 {
		t.Errorf("%v, %v", lines(findings), err)
	}
}

func TestARealEnsembleIsExamined(t *testing.T) {
	full.Needs(t, "an ensemble")
	e, err := ensemble.Start(t.Context(), ensemble.Options{Servers: 3, TickTime: 200 * time.Millisecond, MaxSessionTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	absent := []string{"note /sidekeeper", "note /sidekeeper/locks"} // no sidecar has been here
	for _, c := range []struct {
		name   string
		adjust func(s *doctor.Settings)
		want   []string // about what
	}{
		{"set up alike", func(*doctor.Settings) {}, absent},
		{"a tick that is too short", func(s *doctor.Settings) { s.TickTime /= 2 }, append([]string{"problem --tick-time"}, absent...)},
		{"a sync limit that is too short", func(s *doctor.Settings) { s.SyncLimit-- }, append([]string{"problem --sync-limit"}, absent...)},
		{"a sync limit that is too long", func(s *doctor.Settings) { s.SyncLimit++ }, append([]string{"note --sync-limit"}, absent...)},
		{
			"a session timeout that is not given", func(s *doctor.Settings) { s.SessionTimeout = time.Minute },
			append([]string{"warning a server"}, absent...),
		},
		{
			"a session timeout of little use", func(s *doctor.Settings) {
				config := zookeeper.Config{TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second}
				s.Validity = config.Validity(4 * time.Second)
			},
			append([]string{"warning --session-timeout"}, absent...),
		},
		{"a server that is left out", func(s *doctor.Settings) { s.Servers = s.Servers[:2] }, append([]string{"note --zookeeper"}, absent...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := settingsFor(e.ClientAddresses()...)
			client := connect(t, settings)
			c.adjust(&settings)
			findings, err := doctor.Examine(t.Context(), client, settings, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range slices.DeleteFunc(findings, isOpenNodes) {
				if slices.Contains(settings.Servers, f.About) {
					f.About = "a server"
				}
				got = append(got, f.Severity.String()+" "+f.About)
			}
			if diff := cmp.Diff(c.want, slices.Compact(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
