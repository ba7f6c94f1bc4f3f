package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// Sizes, modes and choices are refused, or shown as they are then read again.
func FuzzValuesOfSettings(f *testing.F) {
	for _, text := range []string{
		"0", "256KiB", "1MiB", "1023MiB", "1024MiB", "1024GiB", "-1", "+1", "0x10", "1e3", "KiB", "1KiBKiB", "0660", "0777", "01777", "8", "open",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var word choice
		for _, value := range []pflag.Value{new(byteCount), new(fileMode), choose(&word, "open", "nested")} {
			if value.Set(text) != nil {
				continue
			}
			shown := value.String()
			if err := value.Set(shown); err != nil || value.String() != shown {
				t.Errorf("%q is shown as %q, and that as %q, %v", text, shown, value.String(), err)
			}
		}
		var size byteCount
		if size.Set(text) == nil && (size < 0 || size > 1<<40) {
			t.Errorf("%q is %d bytes", text, size)
		}
		var mode fileMode
		if mode.Set(text) == nil && mode&^0o777 != 0 {
			t.Errorf("%q is the mode %o", text, mode)
		}
	})
}

// Whatever a setting is set to, on the command line or in the environment, both understand it alike; and what obeys the
// rules can be used.
func FuzzSettings(f *testing.F) {
	for _, setting := range [][2]string{
		{"root", "/a/b"},
		{"root", "//"},
		{"lock-root", "/a/../b"},
		{"tick-time", "1h"},
		{"tick-time", "9223372036854775807ns"},
		{"session-timeout", "-1s"},
		{"zookeeper", "a:1,b:2"},
		{"zookeeper", "\"a:1"},
		{"listen", "unix:///x"},
		{"acl", "world:anyone:r"},
		{"acl", ":::"},
		{"socket-mode", "0600"},
		{"max-streams", "1048577"},
		{"ephemeral-bytes", "1KiB"},
		{"proof", "static"},
		{"drain-timeout", "0.000000001s"},
		{"heartbeat", "1ns"},
		{"sync-limit", "2147483647"},
	} {
		f.Add(setting[0], setting[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		if new(settings).flags().Lookup(name) == nil || strings.ContainsRune(value, 0) {
			return
		}
		base := map[string]string{"SIDEKEEPER_ZOOKEEPER": "localhost:2181"}
		line, lineErr := parsed(base, "--"+name+"="+value)
		base[variable(name)] = value
		environment, environmentErr := parsed(base)
		if (lineErr == nil) != (environmentErr == nil) {
			t.Errorf("--%s=%q: %v; as a variable: %v", name, value, lineErr, environmentErr)
		}
		if lineErr != nil || environmentErr != nil {
			return
		}
		locks := func(s *settings) string { return s.place(s.lockRoot, "locks") }
		if locks(line) != locks(environment) || line.ensemble.SessionTimeout != environment.ensemble.SessionTimeout {
			t.Errorf("--%s=%q and the variable differ", name, value)
		}
		usable(t, line)
	})
}

// usable fails the test unless settings that obey the rules mean something: no number among them runs over when it is
// multiplied, as the proof of a session does.
func usable(t *testing.T, s *settings) {
	t.Helper()
	tick, timeout, sync := s.ensemble.TickTime, s.ensemble.SessionTimeout, s.ensemble.SyncLimit
	beats := float64(tick) * float64(3*int64(sync)+1)
	if tick <= 0 || timeout/2 < tick || beats > math.MaxInt64/2 || timeout > math.MaxInt64/4 {
		t.Errorf("tick %v, sync limit %d and session timeout %v obey the rules", tick, sync, timeout)
	}
	if s.ephemeralBytes < 1<<10 || s.server.KeepaliveTime < time.Second || s.server.MaxStreams < 1 || 2*s.server.MaxStreams > math.MaxUint32 {
		t.Errorf("%+v obey the rules", s)
	}
}

// Whatever lies in the file of credentials, it is refused, or each of them is one line with a user.
func FuzzCredentials(f *testing.F) {
	for _, text := range []string{"app:secret\n", "a:b\r\n\r\nc:d", ":x", "a", "", "\n", "a::\x00"} {
		f.Add([]byte(text))
	}
	s := &settings{authFile: "file"}
	f.Fuzz(func(t *testing.T, content []byte) {
		credentials, err := s.parseCredentials(content)
		if err != nil {
			if len(content) > 20 && strings.Contains(err.Error(), string(content)) {
				t.Errorf("%v: tells the secret", err)
			}
			return
		}
		for _, credential := range credentials {
			if colon := bytes.IndexByte(credential, ':'); colon < 1 || bytes.ContainsAny(credential, "\n") {
				t.Errorf("%q is taken for a user and a password", credential)
			}
		}
	})
}
