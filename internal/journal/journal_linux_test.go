package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sidekeeper/sidekeeper/recipes"
)

const scope = "/sidekeeper"

func open(t *testing.T, dir, scope string) (*Journal, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.WarnLevel)
	j, err := Open(dir, scope, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j, logs
}

func record(session int64) Record {
	return Record{
		Identity: "uid:1000", Owner: "billing", Metadata: map[string]string{"pod": "a"}, Opened: time.Unix(1, 0).UTC(),
		Session: recipes.SessionKey{ID: session, Password: []byte("0123456789abcdef"), Timeout: time.Minute},
	}
}

func write(t *testing.T, j *Journal, key string, r Record) {
	t.Helper()
	if err := j.Write(key, r); err != nil {
		t.Fatal(err)
	}
}

// again is the journal of the process after.
func again(t *testing.T, j *Journal) (*Journal, *observer.ObservedLogs) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, j.dir, scope)
}

func TestARecordIsHandedOutOnceToItsCaller(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j, _ := open(t, dir, scope)
	write(t, j, "a", record(1))
	write(t, j, "b", record(2))
	write(t, j, "c", record(3))
	shared := record(3)
	shared.Shared = true
	write(t, j, "c", shared)
	j.Remove("b")
	j.Remove("b") // which is gone
	if _, ok := j.Claim("a", "uid:1000"); ok {
		t.Error("handed out to the process that wrote it")
	}
	j, _ = again(t, j)
	if _, ok := j.Claim("a", "uid:1001"); ok {
		t.Error("handed out to somebody else")
	}
	if _, ok := j.Claim("b", "uid:1000"); ok {
		t.Error("handed out after its removal")
	}
	for key, want := range map[string]Record{"a": record(1), "c": shared} {
		got, ok := j.Claim(key, "uid:1000")
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: %t %s", key, ok, diff)
		}
		if _, ok := j.Claim(key, "uid:1000"); ok {
			t.Errorf("%s is handed out twice", key)
		}
	}
	j.Return("a", record(1))
	if _, ok := j.Claim("a", "uid:1000"); !ok {
		t.Error("not handed out after it was claimed in vain")
	}
	if j, _ = again(t, j); len(j.earlier) != 2 {
		t.Errorf("the process after finds %d", len(j.earlier))
	}
}

func TestALeaseIsAwaitedForAsLongAsItMayBeHandedOut(t *testing.T) {
	j, _ := open(t, filepath.Join(t.TempDir(), "state"), scope)
	made := record(1)
	made.Session.Timeout = time.Hour
	write(t, j, "a", made)
	j, _ = again(t, j)
	awaited := func(when string, want bool, key, identity string) {
		t.Helper()
		if got := j.Awaits(key, identity); got != want {
			t.Errorf("%s: %t", when, got)
		}
	}
	awaited("the lease", true, "a", "uid:1000")
	awaited("any lease", true, "", "uid:1000")
	awaited("another lease", false, "b", "uid:1000")
	awaited("somebody else's", false, "a", "uid:1001")
	j.began = j.began.Add(-2 * time.Hour)
	awaited("after its session has expired", false, "a", "uid:1000")
	j.began = time.Now()
	if _, ok := j.Claim("a", "uid:1000"); !ok {
		t.Error("not handed out")
	}
	awaited("once it is handed out", false, "a", "uid:1000")
}

func TestWhatMayNotBeUsedIsRefusedAndDeleted(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, j *Journal, file string){
		"torn": func(t *testing.T, _ *Journal, file string) {
			if err := os.Truncate(file, 40); err != nil {
				t.Fatal(err)
			}
		},
		"with another digit": func(t *testing.T, _ *Journal, file string) {
			replace(t, file, `"id":1`, `"id":3`)
		},
		"without a checksum": func(t *testing.T, _ *Journal, file string) {
			replace(t, file, sumField, `,"mus":"`)
		},
		"empty": func(t *testing.T, _ *Journal, file string) {
			if err := os.Truncate(file, 0); err != nil {
				t.Fatal(err)
			}
		},
		"of another boot": func(t *testing.T, j *Journal, _ string) {
			j.boot = "another"
			write(t, j, "a", record(1))
		},
		"of other directories": func(t *testing.T, j *Journal, _ string) {
			j.scope = "/elsewhere"
			write(t, j, "a", record(1))
		},
		"of another name": func(t *testing.T, _ *Journal, file string) {
			if err := os.Rename(file, strings.Replace(file, "a.lease", "x.lease", 1)); err != nil {
				t.Fatal(err)
			}
		},
		"without a password": func(t *testing.T, j *Journal, _ string) {
			spoilt := record(1)
			spoilt.Session.Password = nil
			write(t, j, "a", spoilt)
		},
		"unfinished": func(t *testing.T, _ *Journal, file string) {
			if err := os.Rename(file, strings.Replace(file, "a.lease", "a.new", 1)); err != nil {
				t.Fatal(err)
			}
		},
		"with the session of another": func(t *testing.T, j *Journal, _ string) {
			write(t, j, "z", record(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := open(t, filepath.Join(t.TempDir(), "state"), scope)
			write(t, j, "a", record(1))
			write(t, j, "good", record(2))
			spoil(t, j, filepath.Join(j.dir, "a.lease"))
			j, logs := again(t, j)
			if len(j.earlier) != 1 || j.earlier["good"].Session.ID != 2 {
				t.Errorf("%v is believed", j.earlier)
			}
			if logs.FilterMessageSnippet("cannot be resumed").Len() != 1 {
				t.Errorf("%v is said", logs.All())
			}
			entries, err := os.ReadDir(j.dir)
			if err != nil || len(entries) != 3 {
				t.Errorf("%v %v is left", entries, err)
			}
		})
	}
}

// replace has a file say something else.
func replace(t *testing.T, file, old, by string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), old, by, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(file); err != nil || bytes.Equal(after, data) {
		t.Fatalf("%s is not in %s: %v", old, data, err)
	}
}

func TestADirectoryIsOneProcessesAndNobodyElseReadsIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	j, _ := open(t, dir, scope)
	if _, err := Open(dir, scope, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "another process has it") {
		t.Error(err)
	}
	write(t, j, "a", record(1))
	made, _ := open(t, filepath.Join(t.TempDir(), "state"), scope)
	for _, path := range []string{made.dir, filepath.Join(dir, "a.lease"), filepath.Join(dir, lockName)} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
}

func TestWhatNobodyComesBackToIsForgotten(t *testing.T) {
	j, _ := open(t, filepath.Join(t.TempDir(), "state"), scope)
	brief := record(1)
	brief.Session.Timeout = time.Millisecond
	write(t, j, "a", brief)
	j, _ = again(t, j)
	<-time.After(2 * time.Millisecond)
	if _, ok := j.Claim("a", "uid:1000"); ok {
		t.Error("handed out after its session's timeout")
	}
	j.dropEarlier()
	if entries, err := os.ReadDir(j.dir); err != nil || len(entries) != 2 {
		t.Errorf("%v %v is left", entries, err)
	}
}

// What a lease that may be resumed costs more than one that may not: its file is made, and deleted.
func BenchmarkALease(b *testing.B) {
	j, err := Open(filepath.Join(b.TempDir(), "state"), scope, zap.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	for b.Loop() {
		if err := j.Write("a", record(1)); err != nil {
			b.Fatal(err)
		}
		j.Remove("a")
	}
}
