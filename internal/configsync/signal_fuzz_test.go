package configsync

import "testing"

// What --signal is given is a signal for a process, never for a group or for all.
func FuzzSignals(f *testing.F) {
	for _, text := range []string{
		"4711", "4711:HUP", "4711:SIGUSR1", "-1", "0:HUP", ":HUP", "1:", "--1:TERM", "99999999999999999999:INT", "a:b:HUP",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseSignal(text)
		if err != nil {
			return
		}
		if isNumber(parsed.process) {
			if pid, err := parsed.pid(); err != nil || pid <= 0 {
				t.Errorf("%q is for process %d, %v", text, pid, err)
			}
		}
		if parsed.number <= 0 || parsed.number > 64 {
			t.Errorf("%q is signal %d", text, parsed.number)
		}
	})
}
