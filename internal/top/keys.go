package top

import (
	"context"
	"io"
	"regexp"
)

// A key is what a person presses.
type key int

const (
	quit key = iota + 1
	up
	down
	pageUp
	pageDown
)

// keys are what terminals send for a key.
var keys = map[string]key{
	"q": quit, "Q": quit, "\x03": quit, // Ctrl-C, which is no signal while single keys are read
	"k": up, "\x1b[A": up, "\x1bOA": up,
	"j": down, "\x1b[B": down, "\x1bOB": down,
	"\x1b[5~": pageUp, "\x1b[6~": pageDown,
}

var sequence = regexp.MustCompile(`(?s)\x1b[\[O][0-9;]*.|.`)

// readKeys sends the keys that are pressed, until ctx or the terminal ends. It may stay in its last read for as long as the program runs.
func readKeys(ctx context.Context, terminal io.Reader, pressed chan<- string) {
	buffer := make([]byte, 64)
	for {
		count, err := terminal.Read(buffer)
		if err != nil {
			return
		}
		for _, one := range sequence.FindAllString(string(buffer[:count]), -1) {
			select {
			case pressed <- one:
			case <-ctx.Done():
				return
			}
		}
	}
}
