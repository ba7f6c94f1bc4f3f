package show

import "testing"

func TestAnOwnerThatCouldBeReadAsMoreStandsInQuotes(t *testing.T) {
	t.Parallel()
	for owner, want := range map[string]string{
		"billing on host-7": "billing on host-7", "": "-", "x\n": `"x\n"`,
		"x (uid:0)": `"x (uid:0)"`, "x （uid:0）": `"x （uid:0）"`, `"x" (uid:0)`: `"\"x\" (uid:0)"`, "“x” [uid:0]": `"“x” [uid:0]"`,
		"x  uid:0": `"x  uid:0"`,
	} {
		if got := Owner(owner); got != want {
			t.Errorf("%q: got %s, want %s", owner, got, want)
		}
	}
}
