package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/dev"
)

// Only what a killed process has left is removed: not what a living one has, nor what nobody can know to be a leftover.
func TestDevClearsWhatAKilledOneHasLeft(t *testing.T) {
	killed, welcome := develop(t)
	left := filepath.Dir(said(t, welcome, `unix://(/\S+\.sock)`))
	_ = killed.command.Process.Kill()
	killed.ends()
	if _, err := os.Stat(left); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(left)
	t.Setenv("TMPDIR", folder)
	unmarked, shared := filepath.Join(folder, "sidekeeper-1"), filepath.Join(folder, "sidekeeper-2")
	stay := []string{unmarked, filepath.Join(shared, "sidekeeper-dev.lock")}
	for _, err := range []error{os.Mkdir(unmarked, 0o700), os.Mkdir(shared, 0o750), os.WriteFile(stay[1], nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // of which the second finds the folder of the first
		sidecar, err := dev.New(t.Context(), dev.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sidecar.Abandon() })
		stay = append(stay, strings.TrimPrefix(sidecar.Addresses()[0], "unix://"))
	}
	for _, name := range stay {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("removed, though no process has left it: %v", err)
		}
	}
	if _, err := os.Stat(left); err == nil {
		t.Errorf("%s is left behind", left)
	}
}
