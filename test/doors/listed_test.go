package doors

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// needsRow says what to do about a door that is in no table.
const needsRow = "%s: a new %s needs a row in table_test.go: which attacks are played against it"

// A setting is a flag as the program's help has it.
type setting struct{ name, value, help string }

var (
	flagLine    = regexp.MustCompile(`^ +(?:-\w, )?--([a-z0-9-]+)(?: (\S+))? {2,}(.*)$`)
	commandLine = regexp.MustCompile(`^  ([a-z-]+) +\S`)
)

// helpOf is the help of a command: its flags, and the commands below it.
func helpOf(t *testing.T, words ...string) (settings []setting, below []string) {
	t.Helper()
	path, err := sidekeeper()
	expect.Must(t, err)
	text, err := exec.CommandContext(t.Context(), path, append(words, "--help")...).Output()
	expect.Must(t, err)
	inCommands := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		flag, command := flagLine.FindStringSubmatch(line), commandLine.FindStringSubmatch(line)
		switch {
		case line != "" && line[0] != ' ':
			inCommands = line == "Available Commands:"
		case flag != nil:
			settings = append(settings, setting{flag[1], flag[2], flag[3]})
		case command != nil && inCommands && command[1] != "help":
			below = append(below, command[1])
		case len(settings) > 0:
			settings[len(settings)-1].help += " " + strings.TrimSpace(line)
		}
	}
	return settings, below
}

func (s setting) listens() bool {
	return strings.Contains(s.name, "listen") || strings.HasSuffix(s.name, "-port") || strings.HasPrefix(s.help, "listen address")
}

// namesFile says whether it names a file or a folder.
func (s setting) namesFile() bool {
	isFile := regexp.MustCompile(`(?i)^(.*=)?(file|directory|folder)$`)
	return isFile.MatchString(s.value) || strings.HasPrefix(s.help, "file with") || strings.HasSuffix(s.name, "-file")
}

// servers are the settings of all commands that listen, by command.
func servers(t *testing.T) map[string][]setting {
	t.Helper()
	found := map[string][]setting{}
	_, commands := helpOf(t)
	for len(commands) > 0 {
		command := commands[0]
		settings, below := helpOf(t, strings.Fields(command)...)
		commands = commands[1:]
		for _, name := range below {
			commands = append(commands, command+" "+name)
		}
		if slices.ContainsFunc(settings, setting.listens) {
			found[command] = settings
		}
	}
	if len(found) < 4 {
		t.Fatalf("of commands that listen, help names only %v", slices.Collect(maps.Keys(found)))
	}
	return found
}

func TestEachListenerAndEachFileHasARow(t *testing.T) {
	t.Parallel()
	rows := map[string]bool{}
	for _, door := range doors {
		rows[door.flag] = false
	}
	for _, file := range files {
		rows[file.flag] = false
	}
	for flag := range noDoors {
		rows[flag] = false
	}
	for command, settings := range servers(t) {
		for _, each := range settings {
			flag := command + " --" + each.name
			if _, has := rows[flag]; has {
				rows[flag] = true
			} else if each.listens() {
				t.Errorf(needsRow, flag, "listener")
			} else if each.namesFile() {
				t.Errorf(needsRow, flag, "file that is read")
			}
		}
	}
	for flag, is := range rows {
		if !is {
			t.Errorf("%s has a row and is no setting", flag)
		}
	}
}

func TestEachMethodHasARow(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	plain(s)
	rows := map[string]kind{}
	for _, row := range rpcs {
		for name := range strings.FieldsSeq(row.methods) {
			rows[row.service+"/"+name] = row.kind
		}
	}
	for _, service := range servedBy(t, s) {
		described, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
		if err != nil {
			t.Errorf("%s is served, and these tests do not import what describes it: %v", service, err)
			continue
		}
		methods := described.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			method := methods.Get(i)
			name := service + "/" + string(method.Name())
			is := map[bool]kind{true: stream, false: unary}[method.IsStreamingServer()]
			if method.IsStreamingClient() {
				is = both
			}
			if row, has := rows[name]; !has {
				t.Errorf(needsRow, name, "rpc")
			} else if row != is {
				t.Errorf("%s answers with %s, and its row says %s", name, is, row)
			}
			delete(rows, name)
		}
	}
	for name := range rows {
		t.Errorf("%s has a row and is not served", name)
	}
	for purpose := range s.sidecar.listening() {
		if !slices.ContainsFunc(doors, func(door door) bool { return door.flag == "serve --"+purpose }) {
			t.Errorf(needsRow, purpose, "listener")
		}
	}
}

// servedBy are the services that a sidecar's reflection names.
func servedBy(t *testing.T, s *stage) (names []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	asked, err := reflectionv1.NewServerReflectionClient(s.dial(s.good)).ServerReflectionInfo(ctx)
	expect.Must(t, err)
	expect.Must(t, asked.Send(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	}))
	answer, err := asked.Recv()
	expect.Must(t, err)
	for _, service := range answer.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	return names
}

// The listener for HTTP says itself what it takes.
func TestEachContentTypeHasARow(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	plain(s)
	to := at("http-listen")(s)[0]
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	client, rows := to.client(ctx), maps.Clone(contentTypes)
	for _, method := range methods() {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url(pathOf(method)), strings.NewReader("{}"))
		expect.Must(t, err)
		request.Header.Set("Content-Type", "none/of-them")
		request.Header.Set("Authorization", "Bearer "+to.bearer)
		answer, err := client.Do(request)
		expect.Must(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		expect.Must(t, err)
		answer.Body.Close()
		for taken := range strings.SplitSeq(answer.Header.Get("Accept-Post"), ", ") {
			if _, has := contentTypes[taken]; !has && taken != "" {
				t.Errorf(needsRow, taken, "content type")
			}
			delete(rows, taken)
		}
	}
	for name := range rows {
		t.Errorf("%s has a row and is taken by no method", name)
	}
}

func TestTheLimitsAreThoseOfTheChart(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../helm/sidekeeper/values.yaml")
	expect.Must(t, err)
	type limited struct {
		Resources struct{ Limits struct{ Memory string } }
	}
	var values struct {
		limited  `yaml:",inline"`
		Injector limited
	}
	expect.Must(t, yaml.Unmarshal(text, &values))
	expect.Same(t, "the sidecar's limit", values.Resources.Limits.Memory, fmt.Sprint(sidecarLimit>>20, "Mi"))
	expect.Same(t, "the injector's limit", values.Injector.Resources.Limits.Memory, fmt.Sprint(injectorLimit>>20, "Mi"))
}
