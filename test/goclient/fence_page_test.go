package goclient

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/support/full"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?\n)```")

// around has what the snippets of docs/fencing.md leave out: %1 stands for the first, %2 for the second.
const around = `package main

import (
	"context"
	"database/sql"
	"net/http"

	"google.golang.org/grpc"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper/fence"
)

func write(ctx context.Context, transaction *sql.Tx) error {
%1	return nil
}

func serve(mux *http.ServeMux, address string, credentials grpc.DialOption) []any {
%2	return []any{server, handler, connection, err, client}
}

func main() {
	_, _ = write, serve
}
`

// What it does is tested with package fence, and on databases.
func TestTheGoOfThePageOnFencingCompiles(t *testing.T) {
	full.Needs(t, "to compile a program")
	page, err := os.ReadFile("../../docs/fencing.md")
	must(t, err)
	blocks := goBlock.FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d snippets", len(blocks))
	}
	file := filepath.Join(t.TempDir(), "main.go")
	must(t, os.WriteFile(file, []byte(strings.NewReplacer("%1", blocks[0][1], "%2", blocks[1][1]).Replace(around)), 0o600))
	if output, err := exec.Command("go", "build", "-o", os.DevNull, file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
