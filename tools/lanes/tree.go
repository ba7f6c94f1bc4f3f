package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A tree is what git would commit of a folder now, less the records: what is ignored is no part of it.
type tree struct{ root, id string }

// snapshot takes the tree of the repository in a folder. It leaves git's own index as it is.
func snapshot(ctx context.Context, root string) (tree, error) {
	folder, err := os.MkdirTemp("", "lanes")
	if err != nil {
		return tree{}, err
	}
	defer os.RemoveAll(folder)
	index := "GIT_INDEX_FILE=" + filepath.Join(folder, "index")
	for _, arguments := range [][]string{
		{"read-tree", "HEAD"},
		{"add", "--all"},
		{"rm", "-r", "--cached", "--quiet", "--force", "--ignore-unmatch", records},
	} {
		if _, err := git(ctx, root, index, arguments...); err != nil {
			return tree{}, err
		}
	}
	id, err := git(ctx, root, index, "write-tree")
	return tree{root: root, id: id}, err
}

// hash is git's name for the content of a file or a folder, with all that lies in it.
func (t tree) hash(ctx context.Context, path string) (string, error) {
	return git(ctx, t.root, "", "rev-parse", "--verify", "--quiet", t.id+":"+path)
}

// files are the paths of all files, from the root, with slashes.
func (t tree) files(ctx context.Context) ([]string, error) {
	list, err := git(ctx, t.root, "", "ls-tree", "-r", "-z", "--name-only", t.id)
	return strings.Split(strings.TrimSuffix(list, "\x00"), "\x00"), err
}

func git(ctx context.Context, root, variable string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...) //nolint:gosec // git's own words, and paths of the table
	command.Dir = root
	if variable != "" {
		command.Env = append(os.Environ(), variable)
	}
	said, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(said)), nil
}
