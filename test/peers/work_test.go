package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A worker is a contender that works while it holds the lock.
type worker struct {
	contender

	reads bool
	lasts time.Duration // at least; permits so long that they are held together
	meets int           // with how many it must be inside at one moment, if with any
}

// work holds the lock so often, and on while a test keeps a file called going in the folder. It notes when: for each hold a
// line when it begins, and more on it when it ends.
func (w worker) work(folder, name string, rounds int) error {
	record, err := os.Create(filepath.Join(folder, name+recordSuffix))
	if err != nil {
		return err
	}
	defer record.Close()
	for round := 0; round < rounds || isGoing(folder); round++ {
		asked := now()
		if err := w.acquire(context.Background()); err != nil {
			return err
		}
		fmt.Fprintf(record, "%s %d %d", map[bool]string{true: "read", false: "write"}[w.reads], asked, now())
		if err := errors.Join(w.meet(folder, round), w.count(folder)); err != nil {
			return err
		}
		fmt.Fprintf(record, " %d\n", now())
		if err := w.release(); err != nil {
			return err
		}
	}
	return nil
}

func isGoing(folder string) bool {
	_, err := os.Stat(going(folder))
	return err == nil
}

func going(folder string) string { return filepath.Join(folder, "going") }

// meet waits until all have noted in this round that they are inside.
func (w worker) meet(folder string, round int) error {
	if w.meets == 0 {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(folder, "inside"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(".")
	for err == nil {
		var noted os.FileInfo
		if noted, err = file.Stat(); err == nil && noted.Size() >= int64((round+1)*w.meets) {
			return nil
		}
		<-time.After(time.Millisecond)
	}
	return err
}

// recordSuffix is that of the files in which contenders note their holds.
const recordSuffix = ".record"

// count counts one more, in place, so that who is killed meanwhile leaves a number. If somebody else holds the lock, a count
// is lost. Readers look whether the number changes.
func (w worker) count(folder string) error {
	before, err := counted(folder)
	if err != nil {
		return err
	}
	<-time.After(max(w.lasts, time.Millisecond))
	if w.reads {
		after, err := counted(folder)
		if err == nil && after != before {
			err = fmt.Errorf("%d became %d while it was read", before, after)
		}
		return err
	}
	return setCounter(folder, before+1)
}

func setCounter(folder string, count int) error {
	file, err := os.OpenFile(filepath.Join(folder, "counter"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintf(file, "%012d", count)
	return err
}

func counted(folder string) (int, error) {
	text, err := os.ReadFile(filepath.Join(folder, "counter"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
