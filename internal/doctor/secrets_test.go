package doctor_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/doctor"
)

func TestAKeyThatEveryUserCanReadIsAWarning(t *testing.T) {
	folder := t.TempDir()
	volume := filepath.Join(folder, "..2026")
	if err := os.Mkdir(volume, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{"open": 0o644, "own": 0o600, "group": 0o640, "..2026/mounted": 0o444} {
		path = filepath.Join(folder, path)
		if err := os.WriteFile(path, []byte("secret"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the mask is
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"..data": "..2026", "mounted": "..data/mounted", "linked": "open"} {
		if err := os.Symlink(to, filepath.Join(folder, from)); err != nil {
			t.Fatal(err)
		}
	}
	p := newPatient(t)
	p.Secrets = map[string]string{}
	for _, name := range []string{"open", "own", "group", "mounted", "linked", "missing"} {
		p.Secrets[name] = filepath.Join(folder, name)
	}
	findings, err := doctor.Preflight(t.Context(), p.client, p.Settings)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"open": true, "linked": true, "own": false, "group": false, "mounted": false, "missing": false} {
		found := slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.About == "--"+name && f.Severity == doctor.Warning })
		if found != want {
			t.Errorf("%s: found: %v; %v", name, found, findings)
		}
	}
}
