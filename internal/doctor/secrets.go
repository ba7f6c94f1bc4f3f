package doctor

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// secrets finds files with keys and passwords that every user of this machine may read.
func (e *examination) secrets() {
	for _, flag := range slices.Sorted(maps.Keys(e.Secrets)) {
		path := e.Secrets[flag]
		status, err := os.Stat(path)
		if err != nil || status.Mode().Perm()&0o004 == 0 || isMounted(path) {
			continue // what cannot be read is told by whoever has to
		}
		e.findf(Warning, "--"+flag, "chmod o= "+path, "%s has mode %04o: every user of this machine can read it", path, status.Mode().Perm())
	}
}

// isMounted says whether Kubernetes has put the file there: it links to ..data beside it, in a volume of the containers that mount it.
func isMounted(path string) bool {
	target, err := os.Readlink(path)
	return err == nil && strings.HasPrefix(filepath.ToSlash(target), "..data/")
}
