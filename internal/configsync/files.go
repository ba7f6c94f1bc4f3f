package configsync

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Keys as files: a key is a file, and what keys lie below is a folder. What a file system cannot hold in this way gets
// names that no key has.
const (
	// ownValue is the file with the value of a key that others lie below, in the folder of those others.
	ownValue = "%value"
	// hiddenDot begins the name for a segment that begins with two dots, since such names are those of the folder itself.
	hiddenDot = "%2E."
)

// files are what entries are as files, by their paths with slashes.
func (e entries) files() entries {
	above := map[string]bool{"": true}
	for name := range e {
		for i, letter := range name {
			if letter == '/' {
				above[name[:i]] = true
			}
		}
	}
	files := entries{}
	for name, value := range e {
		file := fileOf(name)
		if above[name] {
			file = path.Join(file, ownValue)
		}
		files[file] = value
	}
	return files
}

func fileOf(name string) string {
	segments := strings.Split(name, "/")
	for i, segment := range segments {
		if rest, dots := strings.CutPrefix(segment, ".."); dots {
			segments[i] = hiddenDot + rest
		}
	}
	return strings.Join(segments, "/")
}

// nameOf is the name whose file it is.
func nameOf(file string) string {
	segments := strings.Split(file, "/")
	for i, segment := range segments {
		if rest, hidden := strings.CutPrefix(segment, hiddenDot); hidden {
			segments[i] = ".." + rest
		}
	}
	if last := len(segments) - 1; segments[last] == ownValue {
		segments = segments[:last]
	}
	return strings.Join(segments, "/")
}

// readEntries reads a folder that writeFiles or a sync has filled, or a person.
func readEntries(folder string) (entries, error) {
	if _, err := os.Stat(filepath.Join(folder, dataLink)); err == nil {
		folder = filepath.Join(folder, dataLink)
	}
	files, err := readFiles(folder)
	if err != nil {
		return nil, err
	}
	read := entries{}
	for file, value := range files {
		name := nameOf(file)
		if _, twice := read[name]; twice {
			return nil, fmt.Errorf("%s: two files for the key %s", folder, name)
		}
		read[name] = value
	}
	return read, nil
}

// readFiles reads all files below a folder, by their paths with slashes. Links that lead out of it are refused.
func readFiles(folder string) (entries, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files := entries{}
	return files, fs.WalkDir(root.FS(), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := root.Stat(file)
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is neither a file nor a folder", filepath.Join(folder, file))
		case info.Size() > MaxValueBytes:
			return fmt.Errorf("%s has %d bytes, more than %d", filepath.Join(folder, file), info.Size(), MaxValueBytes)
		}
		files[file], err = root.ReadFile(file)
		return err
	})
}

// writeFiles fills a folder that is there and empty, and sees to it that the files survive the machine. Files can be read
// by whom mode says, and folders be entered by the same.
func (e entries) writeFiles(folder string, mode fs.FileMode) error {
	folder = filepath.Clean(folder) // as the paths below it are
	enter := mode | mode&0o444>>2
	if err := os.Chmod(folder, enter|0o700); err != nil {
		return err
	}
	folders := map[string]bool{folder: true}
	for file, value := range e {
		where := filepath.Join(folder, filepath.FromSlash(file))
		for above := filepath.Dir(where); !folders[above]; above = filepath.Dir(above) {
			folders[above] = true
		}
		if err := makeFolders(filepath.Dir(where), folder, enter|0o700); err != nil {
			return err
		}
		if err := writeFile(where, value, mode); err != nil {
			return err
		}
	}
	for made := range folders {
		if err := syncFolder(made); err != nil {
			return err
		}
	}
	return nil
}

// makeFolders makes the folders between root and folder, with this mode whatever the process masks.
func makeFolders(folder, root string, mode fs.FileMode) error {
	if folder == root {
		return nil
	}
	if err := makeFolders(filepath.Dir(folder), root, mode); err != nil {
		return err
	}
	if err := os.Mkdir(folder, mode); errors.Is(err, fs.ErrExist) {
		return nil // or a file, which the next step finds
	} else if err != nil {
		return err
	}
	return os.Chmod(folder, mode)
}

// writeFile makes a file that is not there: two keys that one file system takes for the same name are told.
func writeFile(name string, value []byte, mode fs.FileMode) (err error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // below the user's folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(value); err != nil {
		return err
	}
	if err := file.Chmod(mode); err != nil {
		return err
	}
	return file.Sync()
}

// syncFolder makes the names in a folder survive the machine.
func syncFolder(folder string) error {
	opened, err := os.Open(folder) //nolint:gosec // below the user's folder
	if err != nil {
		return err
	}
	defer opened.Close()
	return opened.Sync()
}
