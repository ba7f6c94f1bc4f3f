package journal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
)

// must fails the test for the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// holds fails unless the directory has this mode and holds just these files.
func holds(t *testing.T, dir string, mode os.FileMode, names ...string) {
	t.Helper()
	info, err := os.Stat(dir)
	must(t, err)
	entries, err := os.ReadDir(dir)
	must(t, err)
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	if got, want := strings.Join(found, " "), strings.Join(names, " "); got != want || info.Mode().Perm() != mode {
		t.Errorf("%v with %s, not %v with %s", info.Mode().Perm(), got, mode, want)
	}
}

func TestADirectoryOfOthersIsRefusedAndLeftAsItIs(t *testing.T) {
	for name, want := range map[string]string{"thesis.txt": `it holds "thesis.txt"`, "thesis.lease": `it holds "thesis.lease"`} {
		dir := t.TempDir()
		must(t, os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte("42"), 0o644))
		if _, err := Open(dir, scope, zap.NewNop()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		holds(t, dir, 0o755, name)
	}
}

// The test runs itself anew with a file system of its own at /mnt.
func TestAJournalOnAFileSystemThatCannotBeWrittenNotesNothing(t *testing.T) {
	const inside = "SIDEKEEPER_TEST_MOUNTED"
	if os.Getenv(inside) == "" {
		for _, options := range []string{"ro", "size=4k,nr_inodes=1"} {
			again := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--mount", "sh", "-ec",
				`mount -t tmpfs -o "$1" none /mnt; exec "$0" -test.run '^`+t.Name()+`$' -test.count 1`, os.Args[0], options)
			again.Env = append(os.Environ(), inside+"=yes")
			if said, err := again.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", options, err, said)
			}
		}
		return
	}
	j, logs := open(t, "/mnt/state", scope)
	if logs.FilterMessageSnippet("no lease can be resumed").Len() != 1 {
		t.Errorf("%v is said", logs.All())
	}
	if err := j.Write("a", record(1)); err == nil {
		t.Error("a lease is noted")
	}
	if !j.Remove("a") || j.Awaits("a", "uid:1000") {
		t.Error("a lease is there")
	}
	must(t, j.Close())
}

func TestADirectoryThatOthersMayWriteInIsRefusedAndLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o777))
	if _, err := Open(dir, scope, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "others may write in it, by its mode 0777") {
		t.Error(err)
	}
	holds(t, dir, 0o777)
}

// The kubelet gives a volume with an fsGroup to that group, anew for each pod.
func TestADirectoryThatWasGivenToAGroupIsTakenBack(t *testing.T) {
	j, _ := open(t, filepath.Join(t.TempDir(), "state"), scope)
	write(t, j, "a", record(1))
	must(t, os.Chmod(j.dir, 0o770|os.ModeSetgid), os.Chmod(filepath.Join(j.dir, "a.lease"), 0o660))
	j, _ = again(t, j)
	if len(j.earlier) != 1 {
		t.Errorf("%v is believed", j.earlier)
	}
	holds(t, j.dir, 0o750, "a.lease", lockName, markName)
}

func TestADirectoryThatWasMadeByHandKeepsItsMode(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o750))
	open(t, dir, scope)
	holds(t, dir, 0o750, lockName, markName)
}

// An earlier version made no mark.
func TestTheDirectoryOfAnEarlierVersionIsUsed(t *testing.T) {
	j, _ := open(t, filepath.Join(t.TempDir(), "state"), scope)
	write(t, j, "a", record(1))
	must(t, os.Remove(filepath.Join(j.dir, markName)))
	j, _ = again(t, j)
	if len(j.earlier) != 1 {
		t.Errorf("%v is believed", j.earlier)
	}
	holds(t, j.dir, 0o700, "a.lease", lockName, markName)
}

// Each of these would be deleted, keep the start waiting, or be read without an end.
func TestWhatOthersPutIntoTheDirectoryIsLeft(t *testing.T) {
	j, _ := open(t, filepath.Join(t.TempDir(), "state"), scope)
	write(t, j, "good", record(2))
	in := func(name string) string { return filepath.Join(j.dir, name) }
	elsewhere := filepath.Join(t.TempDir(), "x")
	must(t, os.WriteFile(elsewhere, nil, 0o600),
		syscall.Mkfifo(in("fifo.lease"), 0o600), syscall.Mkfifo(in("fifo.new"), 0o600), os.Symlink("/dev/zero", in("zero.lease")),
		os.Symlink(elsewhere, in("link.lease")), os.WriteFile(in("thesis.txt"), nil, 0o600), os.Mkdir(in("folder.lease"), 0o700),
		os.WriteFile(in("large.lease"), nil, 0o600), os.Truncate(in("large.lease"), 1<<40))
	opened := make(chan *Journal)
	must(t, j.Close())
	go func() {
		defer close(opened)
		if again, err := Open(j.dir, scope, zap.NewNop()); err == nil {
			opened <- again
		}
	}()
	select {
	case again := <-opened:
		if again == nil || len(again.earlier) != 1 {
			t.Fatal("it is not opened, or not what was good is believed")
		}
		must(t, again.Close())
	case <-time.After(10 * time.Second):
		t.Fatal("it is not opened")
	}
	holds(t, j.dir, 0o700, "fifo.lease", "fifo.new", "folder.lease", "good.lease", "large.lease", "link.lease", lockName, markName,
		"thesis.txt", "zero.lease")
}

func TestARecordThatCannotBeReplacedStands(t *testing.T) {
	j, _ := open(t, filepath.Join(t.TempDir(), "state"), scope)
	write(t, j, "a", record(1))
	must(t, os.MkdirAll(filepath.Join(j.dir, "a.new", "x"), 0o700))
	if err := j.Write("a", record(2)); err == nil {
		t.Error("it was replaced")
	}
	if j, _ = again(t, j); j.earlier["a"].Session.ID != 1 {
		t.Errorf("%v is believed", j.earlier)
	}
}
