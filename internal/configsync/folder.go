package configsync

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A folder is kept equal to some entries. Its files are replaced all at once, in the way that Kubernetes replaces those of a
// ConfigMap: each state lies in a folder of its own, named after a moment; the link ..data leads to the newest; and what
// people see at the top are links through it.
//
//	host -> ..data/host
//	..data -> ..2026_11_21_14_50_05.2843712
//	..2026_11_21_14_50_05.2843712/host
//	..sidekeeper
//
// A program that follows ..data once sees one state, whatever happens meanwhile. A process that dies leaves the old state
// or the new one, and remains that the next one removes.
type folder struct {
	path string
	mode fs.FileMode
	mark *os.File // locked while this process keeps the folder
}

const (
	dataLink = "..data"
	nextLink = "..data_tmp"
	// markName is the file that says whose folder it is: the prefix, in one line.
	markName = "..sidekeeper"
)

// stateFolder is the name of a folder that holds one state.
var stateFolder = regexp.MustCompile(`^\.\.\d{4}(_\d\d){5}\.\d+$`)

// openFolder makes the folder if it is missing, and refuses one that is not empty and that it has not made for this prefix.
// The folder must be closed.
func openFolder(where, prefix string, mode fs.FileMode) (*folder, error) {
	if err := os.MkdirAll(where, 0o755); err != nil { //nolint:gosec // the files have the mode that was asked for
		return nil, err
	}
	f := &folder{path: where, mode: mode}
	if err := f.refuseForeign(); err != nil {
		return nil, err
	}
	if err := f.take(prefix); err != nil {
		return nil, err
	}
	if err := f.sweep(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *folder) close() error { return f.mark.Close() }

func (f *folder) at(name string) string { return filepath.Join(f.path, name) }

func (f *folder) refuseForeign() error {
	present, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	_, err = os.Lstat(f.at(markName))
	for _, entry := range present {
		if err != nil || !f.made(entry) {
			return fmt.Errorf("%s holds %s, which sync did not create: choose an empty folder", f.path, entry.Name())
		}
	}
	return nil
}

// made says whether it is something that a folder is made of.
func (f *folder) made(entry fs.DirEntry) bool {
	name := entry.Name()
	switch {
	case name == markName:
		return entry.Type().IsRegular()
	case name == dataLink, name == nextLink:
		return entry.Type() == fs.ModeSymlink
	case entry.IsDir():
		return stateFolder.MatchString(name)
	default:
		target, err := os.Readlink(f.at(name))
		return err == nil && target == throughData(name)
	}
}

// throughData is where the link leads that people see.
func throughData(name string) string { return dataLink + "/" + name }

// take locks the folder for this process and marks it as the prefix's. A mark that a process could not finish is empty.
func (f *folder) take(prefix string) (err error) {
	if f.mark, err = os.OpenFile(f.at(markName), os.O_RDWR|os.O_CREATE, 0o644); err != nil { //nolint:gosec // no secret
		return err
	}
	defer func() {
		if err != nil {
			f.mark.Close()
		}
	}()
	if err := f.lock(); err != nil {
		return err
	}
	marked, err := os.ReadFile(f.at(markName))
	if err != nil {
		return err
	}
	of, whole := strings.CutSuffix(string(marked), "\n")
	if whole && of != prefix {
		return fmt.Errorf("%s holds the files of prefix %q: choose another folder for %q", f.path, of, prefix)
	}
	if whole {
		return nil
	}
	if err := f.mark.Truncate(0); err != nil {
		return err
	}
	_, err = f.mark.WriteString(prefix + "\n")
	return err
}

// lockTimeout is how long the lock of a process that was killed may linger: in a child that it was starting.
const lockTimeout = 2 * time.Second

func (f *folder) lock() error {
	for late := time.After(lockTimeout); ; {
		if lockFile(f.mark) == nil {
			return nil
		}
		select {
		case <-time.After(lockTimeout / 40):
		case <-late:
			return fmt.Errorf("another process maintains %s: stop it first, or choose another folder", f.path)
		}
	}
}

// sweep removes what is not part of the newest state.
func (f *folder) sweep() error {
	newest, err := os.Readlink(f.at(dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	present, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, entry := range present {
		name := entry.Name()
		if name == nextLink || entry.IsDir() && stateFolder.MatchString(name) && name != newest {
			err = errors.Join(err, os.RemoveAll(f.at(name)))
		}
	}
	return err
}

// replace makes the entries the newest state, and says whether they were not yet. With an error the folder holds the state
// that it had or the new one, and to replace it again is safe.
func (f *folder) replace(with entries) (changed bool, err error) {
	files := with.files()
	if !f.holds(files) {
		changed = true
		if err := f.swap(files); err != nil {
			return false, errors.Join(err, f.sweep())
		}
	}
	if err := errors.Join(f.link(files), f.sweep()); err != nil {
		return changed, err
	}
	return changed, syncFolder(f.path)
}

func (f *folder) holds(files entries) bool {
	present, err := readFiles(f.at(dataLink))
	if err != nil || !maps.EqualFunc(present, files, bytes.Equal) {
		return false
	}
	for file := range files {
		if info, err := os.Stat(f.at(throughData(file))); err != nil || info.Mode().Perm() != f.mode {
			return false
		}
	}
	return true
}

// swap writes the files into a folder of their own, and lets the link ..data lead there in one step.
func (f *folder) swap(files entries) error {
	state, err := os.MkdirTemp(f.path, time.Now().UTC().Format("..2006_01_02_15_04_05."))
	if err != nil {
		return err
	}
	if err := files.writeFiles(state, f.mode); err != nil {
		return err
	}
	if err := os.Remove(f.at(nextLink)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(filepath.Base(state), f.at(nextLink)); err != nil {
		return err
	}
	return os.Rename(f.at(nextLink), f.at(dataLink))
}

// link makes the links that people see, and removes those that lead nowhere any more.
func (f *folder) link(files entries) error {
	var wanted []string
	for file := range files {
		top, _, _ := strings.Cut(file, "/")
		wanted = append(wanted, top)
	}
	slices.Sort(wanted)
	for _, name := range slices.Compact(wanted) {
		if target, err := os.Readlink(f.at(name)); err == nil && target == throughData(name) {
			continue
		}
		if err := os.Symlink(throughData(name), f.at(name)); err != nil {
			return err
		}
	}
	return f.unlink(wanted)
}

func (f *folder) unlink(wanted []string) error {
	present, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, entry := range present {
		_, keep := slices.BinarySearch(wanted, entry.Name())
		if keep || entry.Type() != fs.ModeSymlink || entry.Name() == dataLink || !f.made(entry) {
			continue
		}
		if err := os.Remove(f.at(entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
