package documents

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/process"
	"github.com/sidekeeper/sidekeeper/test/support/toolchain"
)

// ensemble is where documents have the ensemble of `sidekeeper dev` listen.
const ensemble = "127.0.0.1:45321"

// patient is how long a command may take to show what it must, on a machine that has other things to do.
const patient = time.Minute

// programs is the folder where what the documents run is built, once. TestMain removes it.
var programs = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "sidekeeper-documents-")
	if err != nil {
		return "", err
	}
	for _, arguments := range [][]string{
		{"../../cmd/sidekeeper"},
		{"-modfile=../../tools/grpcurl/go.mod", "github.com/fullstorydev/grpcurl/cmd/grpcurl"},
	} {
		if err := toolchain.Build(context.Background(), folder+"/", arguments...); err != nil {
			return folder, err
		}
	}
	return folder, nil
})

// A scene is one document's: a folder that looks like the document's own, terminals, and a sidecar.
type scene struct {
	folder    string
	nursery   *process.Nursery
	terminals map[string]*terminal
	exports   []string          // what was exported in the terminal without a name
	places    map[string]string // addresses and folders that the document shows, and what they are in truth
	bindings  *bindings
	given     []string // more variables
}

func newScene(t *testing.T, document document) *scene {
	t.Helper()
	folder, err := os.MkdirTemp("", "scene-")
	must(t, err)
	s := &scene{
		folder: folder, nursery: process.NewNursery(), terminals: map[string]*terminal{}, places: map[string]string{}, bindings: newBindings(),
	}
	t.Cleanup(func() {
		s.close(t)
		s.nursery.Close()
		os.RemoveAll(folder)
	})
	s.furnish(t, document.path)
	if document.installs() {
		s.cloneSources(t)
	}
	for _, name := range []string{"/tmp/", "/run/", "/etc/"} {
		s.places[name] = folder + "/scene" + name
		must(t, os.MkdirAll(s.places[name]+"sidekeeper", 0o755))
	}
	must(t, os.WriteFile(s.places["/etc/"]+"sidekeeper/ensemble", []byte("sidecar:secret\n"), 0o600))
	return s
}

// furnish puts into the scene's folder what stands where the document's reader is: the repository or, for a README
// below it, the folder of that. The programs are where `make build` leaves them.
func (s *scene) furnish(t *testing.T, document string) {
	t.Helper()
	home := "../.."
	if path.Base(document) == "README.md" && path.Dir(document) != "docs" {
		home = filepath.Join(home, path.Dir(document))
	}
	home, err := filepath.Abs(home)
	must(t, err)
	entries, err := os.ReadDir(home)
	must(t, err)
	for _, entry := range entries {
		if name := entry.Name(); name != "bin" && !strings.HasPrefix(name, ".") {
			must(t, os.Symlink(filepath.Join(home, name), filepath.Join(s.folder, name)))
		}
	}
	built, err := programs()
	must(t, err)
	must(t, os.Symlink(built, filepath.Join(s.folder, "bin")))
}

// cloneSources puts copies in the place of what clients are made of: what compiles them writes beside their sources.
func (s *scene) cloneSources(t *testing.T) {
	t.Helper()
	for _, name := range []string{"clients", "gen", "proto"} {
		must(t, os.Remove(filepath.Join(s.folder, name)))
	}
	clone := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c",
		`git ls-files -z clients gen proto | xargs -0 cp --parents --target-directory "$0"`, s.folder)
	clone.Dir = "../.."
	if output, err := clone.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// packages are variables by which package managers find what they have on this machine, though the scene is their home, and where they get the
// rest from. What Maven installs is kept apart from what this machine's user has installed.
var packages = sync.OnceValues(func() ([]string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	found := []string{
		"PYTHONUNBUFFERED=1", "PIP_CACHE_DIR=" + filepath.Join(cache, "pip"), "NPM_CONFIG_CACHE=" + filepath.Join(home, ".npm"),
		"NPM_CONFIG_USERCONFIG=" + filepath.Join(home, ".npmrc"),
		"MAVEN_OPTS=-Dmaven.repo.local=" + filepath.Join(cache, "sidekeeper", "maven"),
	}
	for _, name := range []string{"GOENV", "GOPATH", "GOCACHE"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return nil, err
		}
		found = append(found, name+"="+strings.TrimSpace(string(value)))
	}
	for _, variable := range os.Environ() {
		if registry.MatchString(variable) {
			found = append(found, variable)
		}
	}
	return found, nil
})

var registry = regexp.MustCompile(`(?i)^(pip_(index_url|extra_index_url|find_links|cert)|npm_config_registry|node_extra_ca_certs|` +
	`ssl_cert_(file|dir)|https?_proxy|no_proxy)=`)

func (s *scene) environment(t *testing.T) []string {
	t.Helper()
	known, err := packages()
	must(t, err)
	return slices.Concat(known, []string{
		"PATH=" + filepath.Join(s.folder, "bin") + ":" + os.Getenv("PATH"), "HOME=" + s.folder, "LC_ALL=C.UTF-8", "HOSTNAME=host",
		"TMPDIR=" + s.places["/tmp/"], "SIDEKEEPER_LISTEN=unix://" + s.places["/run/"] + "sidekeeper/s",
		"SIDEKEEPER_OPERATOR_LISTEN=unix://" + s.places["/run/"] + "sidekeeper/o",
		"SIDEKEEPER_ENSEMBLE_PORT=" + strings.TrimPrefix(s.truth(ensemble), "127.0.0.1:"),
	}, s.given)
}

// begin starts the sidecar that documents take for granted unless they start one themselves.
func (s *scene) begin(t *testing.T) {
	t.Helper()
	here := s.truth("127.0.0.1:7181")
	s.given = []string{
		"SIDEKEEPER_ADDRESS=" + here, "SIDEKEEPER_OPERATOR_ADDRESS=" + here, "SIDEKEEPER_ADMIN_ADDRESS=" + s.truth("127.0.0.1:7182"),
	}
	s.terminals["sidekeeper"] = s.open(t)
	s.terminals["sidekeeper"].enter(s.truth(standIn("sidekeeper dev --admin-listen 127.0.0.1:7182 --metrics-listen 127.0.0.1:9090")))
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	if !s.terminals["sidekeeper"].output.await(ctx, func(text string, _ bool, _ string) bool {
		return strings.Contains(text, `"address": "`+here) && strings.Contains(text, "Ctrl-C here stops it")
	}) {
		t.Fatal("the sidecar does not start:", s.terminals["sidekeeper"].output.text.String())
	}
}

// terminal is the one of that name, which is opened if it is new.
func (s *scene) terminal(t *testing.T, name string) *terminal {
	t.Helper()
	if s.terminals[name] == nil {
		s.terminals[name] = s.open(t)
		for _, export := range s.exports {
			s.terminals[name].enter(export)
			s.await(t, s.terminals[name])
		}
	}
	return s.terminals[name]
}

func (s *scene) await(t *testing.T, w *terminal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	if !w.output.await(ctx, func(_ string, ended bool, _ string) bool { return ended }) {
		t.Fatal("a shell does not answer")
	}
	w.busy = false
}

// close ends what still runs, the sidecar last.
func (s *scene) close(t *testing.T) {
	t.Helper()
	names := slices.Sorted(maps.Keys(s.terminals))
	slices.SortStableFunc(names, func(a, b string) int { return strings.Compare(role(a), role(b)) })
	for _, name := range names {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		if !s.terminals[name].close(ctx) {
			t.Errorf("what runs in the terminal %q does not end by Ctrl-C", name)
		}
		cancel()
	}
}

func role(terminal string) string {
	if terminal == "sidecar" || terminal == "sidekeeper" {
		return "b"
	}
	return "a"
}

var (
	address = regexp.MustCompile(`(?:127\.0\.0\.1|localhost):\d{4,5}\b|\bzk1:2181(?:,zk2:2181)?|\bhost:port,…|\bHOST:PORT\b|` +
		`(?:^|[\s"'=:])(?:/run/|/tmp/|/etc/)`)
	samePlaces = map[string]string{
		"zk1:2181": ensemble, "zk1:2181,zk2:2181": ensemble, "host:port,…": ensemble, "HOST:PORT": "127.0.0.1:9090",
	}
)

// truth is a command with the addresses and folders of the scene in place of those that the document shows.
func (s *scene) truth(command string) string {
	return address.ReplaceAllStringFunc(command, func(shown string) string {
		before := ""
		if i := strings.IndexByte(shown, '/'); i == 1 {
			before, shown = shown[:1], shown[1:]
		}
		if known := samePlaces[shown]; known != "" {
			shown = known
		}
		if s.places[shown] == "" {
			s.places[shown] = freeAddress(strings.HasPrefix(shown, "localhost"))
		}
		return before + s.places[shown]
	})
}

// shown is an output with what the document shows in place of the scene's addresses and folders.
func (s *scene) shown(output string) string {
	for shown, truth := range s.places {
		output = strings.ReplaceAll(output, truth, shown)
	}
	return strings.ReplaceAll(output, s.folder, "…")
}

// given are the ports that scenes have, whether anybody listens there yet or not.
var given sync.Map

// freeAddress is one on which nobody listens, below the ports that systems give to connections: one of those might take it before its time.
func freeAddress(named bool) string {
	for {
		port := fmt.Sprint(20000 + rand.IntN(12000))
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		listener.Close()
		if named {
			return "localhost:" + port
		}
		return "127.0.0.1:" + port
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
