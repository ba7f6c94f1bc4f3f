package main

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

func TestATerminalGetsNoCommandsOutOfAValue(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	person, programs := openTerminal(t)
	s.put("app/motd", "grün\tplain\n\x1b]0;owned\a\x9b2J \u202e\xff\n")
	args := []string{"--address", s.sidecar.Address(), "config", "get", "app/motd"}
	if code := run(t.Context(), args, strings.NewReader(""), programs, io.Discard); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	lines := bufio.NewReader(person)
	for _, want := range []string{"grün\tplain\r\n", `\x1b]0;owned\a\x9b2J \u202e\xff` + "\r\n"} {
		if seen, err := lines.ReadString('\n'); err != nil || seen != want {
			t.Errorf("the terminal reads %q, %v", seen, err)
		}
	}
}
