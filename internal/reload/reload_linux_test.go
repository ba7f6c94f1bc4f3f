package reload

import (
	"os"
	"path/filepath"
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

// write writes a file a while ago.
func write(t *testing.T, name, content string) {
	t.Helper()
	writeNow(t, name, content)
	ago(t, name)
}

func writeNow(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ago has a file written a while ago.
func ago(t *testing.T, name string) {
	t.Helper()
	then := time.Now().Add(-2 * settled)
	if err := os.Chtimes(name, then, then); err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, files *Files[string], want string) {
	t.Helper()
	if err := files.Look(); err != nil {
		t.Fatal(err)
	}
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

// A program that renders a file in place writes half of it first, which may be a good value, too.
func TestWhatMayNotBeWrittenAsAWholeIsNotTakenOver(t *testing.T) {
	t.Parallel()
	files, name := open(t)
	later := time.Now().Add(time.Hour)
	writeNow(t, name, "half")
	if err := os.Chtimes(name, later, later); err != nil { // however long the test takes
		t.Fatal(err)
	}
	is(t, files, "first")
	write(t, name, "half and half")
	is(t, files, "half and half")
}

// The clock of the files may be another one: what stays the same counts as written.
func TestWhatStaysTheSameIsTakenOverWhateverItsTimeSays(t *testing.T) {
	t.Parallel()
	files, name := open(t)
	writeNow(t, name, "second")
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(name, later, later); err != nil {
		t.Fatal(err)
	}
	is(t, files, "first")
	for files.Newest() != "second" {
		select {
		case <-time.After(settled / 10):
		case <-t.Context().Done():
			return
		}
	}
}

// A disk that hangs is a file whose opening waits.
func TestTheLastGoodValueStandsWhileTheDiskHangs(t *testing.T) {
	t.Parallel()
	files, name := open(t)
	answers := make(chan struct{})
	files.read = func(name string) ([]byte, time.Time, error) {
		<-answers
		return read(name)
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
	if err := os.WriteFile(name, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	ago(t, name)
	looked, _ := files.look()
	close(answers)
	<-looked
	if got := files.Last(); got != "second" {
		t.Errorf("%q when the disk has answered", got)
	}
}
