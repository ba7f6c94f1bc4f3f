package house

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const clientPath = modulePath + "/clients/go/sidekeeper"

// Whoever calls the client needs no stubs, and stubs may change without a change of the client.
func TestTheGoClientShowsNoTypeOfTheStubs(t *testing.T) {
	t.Parallel()

	seen := &exported{visited: map[types.Type]bool{}}

	scope := clientPackage(t).Scope()
	for _, name := range scope.Names() {
		if object := scope.Lookup(name); object.Exported() {
			seen.visit(name, object.Type())
		}
	}

	for _, found := range seen.stubs {
		t.Error(found)
	}

	if len(seen.visited) < 100 {
		t.Errorf("only %d types are seen: this test would prove nothing", len(seen.visited))
	}
}

// exported walks over what is exported of the client.
type exported struct {
	visited map[types.Type]bool
	stubs   []string
}

func (e *exported) visit(way string, of types.Type) {
	of = types.Unalias(of)
	if e.visited[of] {
		return
	}

	e.visited[of] = true

	switch of := of.(type) {
	case *types.Named:
		e.visitNamed(way, of)
	case *types.Struct:
		for field := range of.Fields() {
			if field.Exported() || field.Embedded() {
				e.visit(way+"."+field.Name(), field.Type())
			}
		}
	case *types.Interface:
		for method := range of.Methods() {
			e.visit(way+"."+method.Name(), method.Type())
		}
	case *types.Signature:
		e.visit(way, of.Params())
		e.visit(way, of.Results())
	case *types.Tuple:
		for variable := range of.Variables() {
			e.visit(way, variable.Type())
		}
	case *types.Map:
		e.visit(way, of.Key())
		e.visit(way, of.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		e.visit(way, of.Elem())
	}
}

// visitNamed goes into types of the client, exported or not, and not into those of others.
func (e *exported) visitNamed(way string, of *types.Named) {
	for argument := range of.TypeArgs().Types() {
		e.visit(way, argument)
	}

	from := of.Obj().Pkg()
	if from == nil {
		return
	}

	if within(from.Path(), modulePath+"/gen") {
		e.stubs = append(e.stubs, fmt.Sprintf("%s is, or has, a %s", way, of))
	}

	if from.Path() != clientPath {
		return
	}

	e.visit(way, of.Underlying())

	for method := range of.Methods() {
		if method.Exported() {
			e.visit(way+"."+method.Name(), method.Type())
		}
	}
}

// clientPackage is the client as its compiler sees it.
func clientPackage(t *testing.T) *types.Package {
	t.Helper()

	compiled := map[string]string{}

	for _, line := range goList(t, "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", clientPath) {
		name, path, _ := strings.Cut(line, " ")
		compiled[name] = path
	}

	positions := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	})}

	var parsed []*ast.File

	for _, name := range goList(t, "-f", "{{join .GoFiles \"\\n\"}}", clientPath) {
		file, err := parser.ParseFile(positions, filepath.Join("..", "..", "clients", "go", "sidekeeper", name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}

		parsed = append(parsed, file)
	}

	checked, err := config.Check(clientPath, positions, parsed, nil)
	if err != nil {
		t.Fatal(err)
	}

	return checked
}
