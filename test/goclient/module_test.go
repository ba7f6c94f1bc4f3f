package goclient

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

const program = `package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"google.golang.org/grpc"
)

func main() {
	call := func(
		ctx context.Context, method string, request, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption,
	) error {
		fmt.Println("seen", method)
		return invoke(ctx, method, request, reply, c, o...)
	}
	stream := func(
		ctx context.Context, of *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		fmt.Println("seen", method)
		return open(ctx, of, c, method, o...)
	}
	client, err := sidekeeper.Dial(os.Args[1],
		sidekeeper.WithDialOptions(grpc.WithChainUnaryInterceptor(call), grpc.WithChainStreamInterceptor(stream)))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	work := func(ctx context.Context, lock *sidekeeper.Lock) error {
		fmt.Println("locked", lock.FencingToken() > 0)
		return ctx.Err()
	}
	if err := client.WithLock(context.Background(), "orders", sidekeeper.LockOptions{}, work); err != nil {
		log.Fatal(err)
	}
	if _, err := client.Get(context.Background(), "orders"); err != nil {
		log.Fatal(err)
	}
}
`

// Without the client: what gRPC and protobuf bring with them.
const bare = `package main

import (
	_ "google.golang.org/grpc"
	_ "google.golang.org/protobuf/proto"
)

func main() {}
`

func TestAModuleElsewhereTakesALockAndGetsNothingOfTheSidecar(t *testing.T) {
	theirs := newModule(t, program, "require github.com/sidekeeper/sidekeeper/clients/go v0.1.0\n")
	built := filepath.Join(t.TempDir(), "program")
	theirs.run(t, "go", "build", "-o", built, ".")
	address := sidekeepertest.Start(t, sidekeepertest.Options{}).Address()
	said := theirs.run(t, built, address)
	for _, line := range []string{"locked true", "seen /sidekeeper.lease.v1.LeaseService/Multiplex", "seen /sidekeeper.lock.v1.LockService/Get"} {
		if !slices.Contains(said, line) {
			t.Errorf("it has not said %q: %q", line, said)
		}
	}

	for _, name := range theirs.run(t, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".") {
		if !withinOne(name, "example.org/theirs", "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper", "github.com/sidekeeper/sidekeeper/gen",
			"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc",
			"golang.org/x/net", "golang.org/x/sys", "golang.org/x/text") {
			t.Errorf("it is built with %s", name)
		}
	}

	list := []string{"go", "list", "-m", "-f", "{{.Path}}", "all"}
	without := newModule(t, bare, "")
	without.run(t, "go", "build", "-o", os.DevNull, ".") // which writes into its module file what that needs
	brought := without.run(t, list[0], list[1:]...)
	for _, name := range theirs.run(t, list[0], list[1:]...) {
		ours := withinOne(name, "github.com/sidekeeper/sidekeeper/clients/go", "github.com/sidekeeper/sidekeeper/gen")
		if !ours && !slices.Contains(brought, name) {
			t.Errorf("its module has %s below it", name)
		}
	}
}

func withinOne(name string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") })
}

// A module is somebody else's, in a folder of its own.
type module struct{ folder string }

// newModule makes one that requires gRPC and protobuf as the client does, and nothing else; ours are taken from this checkout.
func newModule(t *testing.T, main, required string) module {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	must(t, err)
	client, err := os.ReadFile(filepath.Join(root, "clients", "go", "go.mod"))
	must(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "clients", "go", "go.sum"))
	must(t, err)
	lines := []string{"module example.org/theirs\n", "go 1.26.0\n", required}
	for line := range strings.Lines(string(client)) {
		if name := strings.TrimSpace(line); withinOne(strings.Fields(name + " .")[0], "google.golang.org/grpc", "google.golang.org/protobuf") {
			lines = append(lines, "require "+name+"\n")
		}
	}
	for _, ours := range []string{"clients/go", "gen"} {
		lines = append(lines, "replace github.com/sidekeeper/sidekeeper/"+ours+" => "+filepath.Join(root, ours)+"\n")
	}
	m := module{t.TempDir()}
	for name, text := range map[string]string{"main.go": main, "go.mod": strings.Join(lines, ""), "go.sum": string(sums)} {
		must(t, os.WriteFile(filepath.Join(m.folder, name), []byte(text), 0o600))
	}
	return m
}

// run returns the lines that a program says there.
func (m module) run(t *testing.T, name string, arguments ...string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = m.folder
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	said, err := command.Output()
	if failed, is := err.(*exec.ExitError); is {
		t.Fatalf("%s %q: %v: %s", name, arguments, err, failed.Stderr)
	}
	must(t, err)
	return strings.Split(strings.TrimSpace(string(said)), "\n")
}
