package goclient

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// A situation is one of clients/conformance/situations.yaml, with what callers are told in it. In both texts an ellipsis stands for what
// differs.
type situation struct {
	Clients, Command string
	Exit             int
}

// situations reads the table.
func situations(t testing.TB) (all map[string]situation) {
	t.Helper()
	text, err := os.ReadFile("../../clients/conformance/situations.yaml")
	must(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	must(t, decoder.Decode(&all))
	return all
}

func TestEachTextOfTheTableOfSituationsIsPlayed(t *testing.T) {
	t.Parallel()
	played := map[string]bool{}
	for _, scenario := range scenarios(t) {
		for _, step := range scenario.Steps {
			played[step.Says+map[bool]string{true: " by command"}[step.Do == "command"]] = true
		}
	}
	for name, of := range situations(t) {
		if of.Clients != "" && !played[name] || of.Command != "" && !played[name+" by command"] {
			t.Errorf("no scenario plays %q: %+v", name, of)
		}
	}
}

// elsewhere says that the sidecar is not of this tree, so that it may say something else.
var elsewhere = os.Getenv("SIDEKEEPER_SKEW") != ""

// says sees that a caller is told what the table has for a step's situation.
func (s *stage) says(of step, text string, byCommand bool) {
	s.t.Helper()
	if of.Says == "" || elsewhere {
		return
	}
	found, known := situations(s.t)[of.Says]
	wanted := found.Clients
	if byCommand {
		wanted = found.Command
	}
	if !known || wanted == "" {
		s.t.Fatalf("there is no text for the situation %q", of.Says)
	}
	pattern := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(wanted), "…", ".*") + "$"
	if !regexp.MustCompile(pattern).MatchString(text) {
		s.t.Fatalf("%s: got %q, want %q", of.Says, text, wanted)
	}
}

// tells is what the sidecar has written of itself.
func (s *stage) tells(what *regexp.Regexp) string {
	s.t.Helper()
	said, err := os.ReadFile(s.folder + "/own.said")
	must(s.t, err)
	return what.FindStringSubmatch(string(said))[1]
}

var ensemblesAddress = regexp.MustCompile(`ensemble: +(127\.0\.0\.1:\d+)`)

// at is the address that a step names.
func (s *stage) at(of step) string {
	if of.Address == nil {
		return s.tells(overTCP)
	}
	switch *of.Address {
	case "the secure one":
		return s.tells(overTCP)
	case "the served one":
		return s.served
	case "the ensemble's":
		return s.tells(ensemblesAddress)
	default:
		return *of.Address
	}
}

// serve starts a sidecar as in production, in the folder of the stage's certificates and at its ensemble.
func (s *stage) serve(of step) {
	s.t.Helper()
	flags := strings.Fields(of.Flags)
	if of.Policy != "" {
		must(s.t, os.WriteFile(s.folder+"/own/policy.yaml", []byte(of.Policy), 0o600))
		flags = append(flags, "--policy", "policy.yaml")
	}
	command := exec.Command(s.program, append([]string{
		"serve", "--zookeeper", s.tells(ensemblesAddress), "--tick-time", "1s", "--listen", "127.0.0.1:0", "--operator-listen", "",
		"--audit-log", "off", "--log-level", "error",
	}, flags...)...)
	said, err := os.Create(s.folder + "/served.said")
	must(s.t, err)
	command.Dir, command.Stdout, command.Stderr = s.folder+"/own", said, os.Stderr
	command.Env = append(os.Environ(), "SIDEKEEPER_TEST_TRACES=") // of a sidecar that has an ensemble of its own
	served, err := s.nursery.Start(command, said)
	must(s.t, err)
	s.t.Cleanup(served.Kill)
	s.until(of, func() bool {
		text, err := os.ReadFile(said.Name())
		listening := listens.FindStringSubmatch(string(text))
		if err == nil && listening != nil {
			s.served = listening[1]
		}
		return listening != nil
	})
}

var listens = regexp.MustCompile(`listening on (127\.0\.0\.1:\d+)\n`)

// connectPlainly makes a client without TLS.
func (s *stage) connectPlainly(of step) {
	s.t.Helper()
	s.t.Setenv(sidekeeper.AddressVariable, "")
	client, err := sidekeeper.Dial(s.at(of))
	switch {
	case err == nil && of.Says == "":
		s.clients[of.Client] = client
	case err != nil && of.Says != "":
		s.says(of, err.Error(), false)
	default:
		s.t.Fatalf("%q: %v", *of.Address, err)
	}
}

// command runs a command as a person does, and sees that it ends as the table has it. What one for later runs has begun when this returns.
func (s *stage) command(of step) {
	s.t.Helper()
	words, begun := strings.Fields(of.Run), filepath.Join(s.folder, of.As+".begun")
	if of.Later {
		begins := []string{"sh", "-c", `touch "$0" && exec "$@"`, begun}
		words = slices.Insert(words, slices.Index(words, "--")+1, begins...)
	}
	command := exec.Command(s.program, slices.Concat(words[:2], s.files(of), words[2:])...)
	command.Env = append(os.Environ(), "SIDEKEEPER_ADDRESS="+s.address)
	if of.Address != nil {
		command.Env = append(command.Env, "SIDEKEEPER_ADDRESS="+s.at(of))
	}
	said, err := os.Create(filepath.Join(s.folder, "command.said"))
	must(s.t, err)
	command.Stderr = said
	running, err := s.nursery.Start(command, said)
	must(s.t, err)
	if !of.Later {
		s.hasEnded(of, running)
		return
	}
	s.commands[of.As] = func() { s.hasEnded(of, running) }
	s.until(of, func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
}

// files are the flags of a step's certificate and authority.
func (s *stage) files(of step) (flags []string) {
	if of.Authority != "" {
		flags = append(flags, "--tls-ca", filepath.Join(s.folder, of.Authority, "ca.pem"))
	}
	if of.Certificate != "" {
		certificate, key := s.pair(of)
		flags = append(flags, "--tls-cert", certificate, "--tls-key", key)
	}
	return flags
}

// pair is where a step's certificate lies, and its key.
func (s *stage) pair(of step) (certificate, key string) {
	folder, name := filepath.Join(s.folder, of.Certificate), "client"
	if of.Certificate == "expired" {
		folder, name = filepath.Join(s.folder, "own"), "expired"
	}
	return filepath.Join(folder, name+".pem"), filepath.Join(folder, name+"-key.pem")
}

// hasEnded sees that a command has ended as the table has it.
func (s *stage) hasEnded(of step, command *process.Process) {
	s.t.Helper()
	select {
	case <-command.Exited():
	case <-time.After(patience):
		s.t.Errorf("sidekeeper %s: it goes on", of.Run)
		command.Kill()
	}
	said, err := os.ReadFile(filepath.Join(s.folder, "command.said"))
	must(s.t, err)
	if code, wanted := command.State().ExitCode(), situations(s.t)[of.Says].Exit; code != wanted {
		s.t.Fatalf("sidekeeper %s: got %d, want %d: %s", of.Run, code, wanted, said)
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	s.says(of, strings.TrimPrefix(lines[len(lines)-1], "sidekeeper: "), true)
}
