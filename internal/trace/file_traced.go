//go:build traced

package trace

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// folderName names the folder into which a program that is built with the tag `traced`, and is for tests alone, writes its steps: a file for
// each process, with a line of JSON for each step, as test/traces reads them.
const folderName = "SIDEKEEPER_TEST_TRACES"

type line struct {
	At       int64         `json:"at"` // of the epoch
	Kind     Kind          `json:"kind"`
	Session  int64         `json:"session,omitempty"`
	By       int64         `json:"by,omitempty"`
	Place    string        `json:"place,omitempty"`
	Token    int64         `json:"token,omitempty"`
	Sent     time.Duration `json:"sent,omitempty"`
	Answered time.Duration `json:"answered,omitempty"`
	Until    time.Duration `json:"until,omitempty"`
	Clock    time.Duration `json:"clock,omitempty"`
}

func init() {
	if os.Getenv(folderName) == "" {
		return
	}
	var mu sync.Mutex
	write := File("sidecar-%d.jsonl")
	clock := func() time.Duration { return 0 }
	Listen(func(s Step) {
		mu.Lock()
		defer mu.Unlock()
		if s.Clock != nil {
			clock = s.Clock
		}
		write(line{time.Now().UnixNano(), s.Kind, s.Session, s.By, s.Place, s.Token, s.Sent, s.Answered, s.Until, clock()})
	})
}

// File makes a file of this name in that folder, in which the number is the process's, and returns what writes a line of JSON there. Without a
// folder, nothing is written. One goroutine at a time may write.
func File(name string) (write func(any)) {
	folder := os.Getenv(folderName)
	if folder == "" {
		return func(any) {}
	}
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf(name, os.Getpid())))
	if err != nil {
		panic(err)
	}
	return func(each any) {
		said, _ := json.Marshal(each)
		_, _ = file.Write(append(said, '\n'))
	}
}
