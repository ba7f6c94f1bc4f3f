package chart

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/test/support/full"
	"github.com/sidekeeper/sidekeeper/test/support/manifest"
	"github.com/sidekeeper/sidekeeper/test/support/toolchain"
)

var update = flag.Bool("update", false, "write the expected files anew instead of comparing")

const (
	root  = "../.."
	chart = root + "/helm/sidekeeper"
)

// helm runs helm without anything of the user's, and returns what it writes.
func helm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	full.Needs(t, "helm")
	program, err := toolchain.Program(t.Context(), "helm")
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Helm(t, program, filepath.Join(t.TempDir(), "none"), arguments...)
}

// render is what `helm template` makes of a chart.
func render(t *testing.T, folder string, arguments ...string) string {
	t.Helper()
	output, err := helm(t, append([]string{"template", "test", folder, "--namespace", "sidekeeper"}, arguments...)...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// example is a copy of the example chart with the chart that it depends on.
func example(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for from, to := range map[string]string{root + "/examples/kubernetes": folder, chart: folder + "/charts/sidekeeper"} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	return folder
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	return string(text)
}

// compareOrUpdate compares a file with what it should hold, or writes it.
func compareOrUpdate(t *testing.T, path, wanted string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(wanted), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(read(t, path), wanted); diff != "" {
		t.Errorf("%s (-file +rendered); go test ./test/chart -update writes it:\n%s", path, diff)
	}
}

// valueFiles are the values that the chart is tested with, by name.
func valueFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"tests/values/*.yaml", "examples/*.yaml"} {
		paths, err := fs.Glob(os.DirFS(chart), pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal("no values to test with: ", err)
		}
		for _, path := range paths {
			files[strings.TrimSuffix(filepath.Base(path), ".yaml")] = filepath.Join(chart, path)
		}
	}
	return files
}
