package reload

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func text(contents [][]byte) (string, error) { return string(contents[0]), nil }

func open(t *testing.T) (*Files[string], string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	write(t, name, "first")
	files, err := Open(text, func(string, error) {}, name)
	if err != nil {
		t.Fatal(err)
	}
	return files, name
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, files *Files[string], want string) {
	t.Helper()
	if got := files.Newest(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatIsInTheFilesIsTakenOverWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	files, name := open(t)
	is(t, files, "first")
	write(t, name, "second")
	is(t, files, "second")
}

// A disk that hangs is a file whose opening waits.
func TestTheLastGoodValueStandsWhileTheDiskHangs(t *testing.T) {
	t.Parallel()
	files, name := open(t)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	given := make(chan string)
	go func() {
		for range 2 {
			given <- files.Newest()
		}
	}()
	for range 2 {
		select {
		case got := <-given:
			if got != "first" {
				t.Errorf("%q", got)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("who asks for the value waits for the disk")
		}
	}
	disk, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disk.WriteString("second"); err != nil {
		t.Fatal(err)
	}
	looked, _ := files.look()
	disk.Close()
	<-looked
	if got := files.Last(); got != "second" {
		t.Errorf("%q when the disk has answered", got)
	}
}
