// Package toolchain builds the programs that tests run and whose modules lie below tools/, and keeps them in the user's cache
// folder, so that each version is built once on a machine.
package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// programs is the package of each program, by the folder below tools/ that holds its module, and what the linker is told.
var programs = map[string]struct{ path, flags string }{
	"etcd": {path: "go.etcd.io/etcd/server/v3"},
	"helm": {path: "helm.sh/helm/v4/cmd/helm"},
	"kube-apiserver": {
		path: "k8s.io/kubernetes/cmd/kube-apiserver",
		// Charts ask for the version, which the linker is told in releases too.
		flags: "-X k8s.io/component-base/version.gitVersion=v1.36.3" +
			" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
	},
}

// Program returns the path of a program, which it builds if this version of it was not built before. That takes minutes.
func Program(ctx context.Context, name string) (string, error) {
	program, known := programs[name]
	if !known {
		return "", fmt.Errorf("%s is no program of tools/", name)
	}
	root, err := repository(ctx)
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "tools", name)
	path, err := place(name, module, program.flags)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	work, err := os.MkdirTemp(filepath.Dir(path), "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	built := filepath.Join(work, name)
	if _, err := run(ctx, module, "build", "-ldflags", program.flags, "-o", built, program.path); err != nil {
		return "", err
	}
	return path, os.Rename(built, path) // over one that somebody else has built meanwhile
}

// Build builds the package that is the last of the arguments of go build. A test that runs it is run again when one of the package's sources in
// this repository has changed: the go command knows only of the files that a test opens, and not of what a command of the test reads.
func Build(ctx context.Context, to string, arguments ...string) error {
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	const sources = "{{$d := .Dir}}{{$d}}\n{{range .GoFiles}}{{$d}}/{{.}}\n{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}\n{{end}}"
	program := arguments[len(arguments)-1]
	listed, err := run(ctx, ".", slices.Concat([]string{"list", "-deps", "-f", sources}, modfiles(arguments), []string{program})...)
	if err != nil {
		return err
	}
	for _, file := range append(strings.Fields(string(listed)), root+"/go.mod", root+"/go.sum") {
		if !strings.HasPrefix(file, root+"/") {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return err
		}
	}
	_, err = run(ctx, ".", slices.Concat([]string{"build", "-o", to}, arguments)...)
	return err
}

// modfiles are those of the arguments that say which packages there are.
func modfiles(arguments []string) []string {
	return slices.DeleteFunc(slices.Clone(arguments), func(argument string) bool { return !strings.HasPrefix(argument, "-modfile=") })
}

// Folder returns where the source of a module lies that the module file of tools/name requires.
func Folder(ctx context.Context, name, module string) (string, error) {
	root, err := repository(ctx)
	if err != nil {
		return "", err
	}
	output, err := run(ctx, filepath.Join(root, "tools", name), "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var downloaded struct {
		Folder string `json:"Dir"`
	}
	if err := json.Unmarshal(output, &downloaded); err != nil {
		return "", fmt.Errorf("go mod download: %w", err)
	}
	return downloaded.Folder, nil
}

// place is where a program is kept: under a name that is another one for other sources, flags or compilers.
func place(name, module, flags string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "sidekeeper")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	key := sha256.New()
	fmt.Fprintln(key, runtime.Version(), runtime.GOOS, runtime.GOARCH, flags)
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			return "", err
		}
		key.Write(text)
	}
	return filepath.Join(folder, name+"-"+hex.EncodeToString(key.Sum(nil)[:8])), nil
}

// repository is the folder of this repository, in which the caller runs: in its first module, or in one below tools/.
func repository(ctx context.Context) (string, error) {
	output, err := run(ctx, ".", "env", "GOMOD")
	folder := filepath.Dir(strings.TrimSpace(string(output)))
	if above := filepath.Dir(folder); filepath.Base(above) == "tools" {
		folder = filepath.Dir(above)
	}
	return folder, err
}

func run(ctx context.Context, folder string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = folder
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(complaint.String()))
	}
	return output, nil
}
