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
	switch *of.Address {
	case "the secure one":
		return s.tells(overTCP)
	case "the ensemble's":
		return s.tells(ensemblesAddress)
	default:
		return *of.Address
	}
}

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
		folder := filepath.Join(s.folder, of.Certificate)
		flags = append(flags, "--tls-cert", filepath.Join(folder, "client.pem"), "--tls-key", filepath.Join(folder, "client-key.pem"))
	}
	return flags
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
