package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheEnsembleRunsUntilItIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), time.Minute)
	defer interrupt()
	reading, writing := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--servers", "1", "--tick-time", "200ms"}, writing, io.Discard)
		writing.Close()
	}()
	first, text := make([]byte, 4096), ""
	for !strings.Contains(text, "Ctrl-C") {
		count, err := reading.Read(first)
		if err != nil {
			t.Fatalf("%v after %q; %v", err, text, <-ended)
		}
		text += string(first[:count])
	}
	_, after, _ := strings.Cut(text, " is up: ")
	address, _, _ := strings.Cut(after, "\n")
	if got := ask(t, address); got != "imok" {
		t.Errorf("%s answers %q", address, got)
	}
	interrupt()
	if rest, err := io.ReadAll(reading); string(rest) != "Stopping.\n" || err != nil {
		t.Errorf("said %q, %v", rest, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("it still answers")
	}
}

func ask(t *testing.T, address string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "ruok"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestWrongCommandLinesAreRefused(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"--servers 2", "1 or 3"},
		{"--ports 2181", "1 ports for 3 servers"},
		{"--ports 1,2,x", `"x" is no port`},
		{"--ports 1,2,70000", `"70000" is no port`},
		{"start", "takes no arguments"},
		{"--nonsense", "not defined"},
	} {
		err := run(t.Context(), strings.Fields(test.line), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.line, err)
		}
	}
}

func TestHelpIsNoFailure(t *testing.T) {
	var help bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, io.Discard, &help); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-servers", "-tick-time", "-ports"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("no word of %s", want)
		}
	}
}

// Each example is understood; that they do as they say is shown above with one of them.
func TestTheExamplesOfTheHelpAreUnderstood(t *testing.T) {
	_, examples, _ := strings.Cut(about, "Examples:\n")
	examples, _, _ = strings.Cut(examples, "\n\n")
	lines := strings.Split(examples, "\n")
	for _, line := range lines {
		words := strings.Fields(line)
		if options, err := parse(words[1:], io.Discard); words[0] != "ensemble" || err != nil || len(options.ClientPorts) != options.Servers {
			t.Errorf("%s: %v, %v", line, options, err)
		}
	}
	if len(lines) < 2 || !slices.Contains(lines, "  ensemble --servers 1 --tick-time 200ms") {
		t.Errorf("the examples are %q", lines)
	}
}

func TestPortsThatAreTakenAreTheSystemsChoice(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	first := taken.Addr().(*net.TCPAddr).Port
	if ports := freePorts(first, 1); !slices.Equal(ports, []int{0}) {
		t.Errorf("ports %v", ports)
	}
	taken.Close()
	if ports := freePorts(first, 1); !slices.Equal(ports, []int{first}) {
		t.Errorf("ports %v", ports)
	}
}

func TestPortsAskedForAreUsed(t *testing.T) {
	if ports, err := parsePorts("2181, 7,0", 3); !slices.Equal(ports, []int{2181, 7, 0}) || err != nil {
		t.Errorf("ports %v, %v", ports, err)
	}
}
