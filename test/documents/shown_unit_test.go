package documents

import (
	"strings"
	"testing"
)

func TestWhatIsShownIsToldFromWhatIsNot(t *testing.T) {
	t.Parallel()
	const id, other = "0429ae6bf11f701253ff093821d48b7e", "4c37a7bca3c55cf1f5943ce22fa635bc"
	for _, each := range []struct {
		shown, printed string
		same           bool
	}{
		{"1000", "1000", true},
		{"1000", "1001", false},
		{"1000", "1000\nmore", false},
		{"LOST …", "LOST and more", true},
		{"first\n…\nlast", "first\nsecond\nthird\nlast", true},
		{"first\n…\nlast", "first\nsecond\nthird", false},
		{`"age": "3.97s"`, `"age":  "12ms"`, true},
		{`"age": "3.97s"`, `"age": "long"`, false},
		{`"holdId": "` + id + `"`, `"holdId": "` + other + `"`, true},
		{id + "\n" + id, other + "\n" + other, true},
		{id + "\n" + id, other + "\n" + id, false},
		{"token 7\ntoken 9", "token 21\ntoken 40", true},
		{"token 7\ntoken 9", "token 40\ntoken 21", false},
		{"token 7\ntoken 9", "token 21\ntoken 21", false},
		{"NAME TOKEN WAITS\na 7 1", "NAME   TOKEN   WAITS\na      21      1", true},
		{"NAME TOKEN WAITS\na 7 1", "NAME   TOKEN   WAITS\na      21      2", false},
	} {
		p, text := patternOf(strings.Split(each.shown, "\n"), `\z`), each.printed+"\n"
		match := p.FindStringSubmatchIndex(text)
		if same := match != nil && newBindings().bind(p.groups, groups(text, match)) == nil; same != each.same {
			t.Errorf("%q for %q: %v", each.printed, each.shown, same)
		}
	}
}

func TestACommandMeansTheIDsAndTokensOfThisRun(t *testing.T) {
	t.Parallel()
	b := newBindings()
	must(t, b.bind([]string{"0429ae6bf11f701253ff093821d48b7e", "10"}, []string{"4c37a7bca3c55cf1f5943ce22fa635bc", "26"}))
	got := b.meant(`break --token 10 --count 10 {"id":"0429ae6bf11f701253ff093821d48b7e"} token 11`)
	if want := `break --token 26 --count 10 {"id":"4c37a7bca3c55cf1f5943ce22fa635bc"} token 11`; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestBlocksAreTakenApart(t *testing.T) {
	t.Parallel()
	lines := strings.Split("```console\nfirst$ one \\\n  more\nshown\n$ two\nfirst$ ^C\n```\n```sh\n# why\nthree <<EOF\n$ four\nEOF\n```\n"+
		"Save this as `a.py`:\n\n```python\nfive\n```\n```python\nsix\n```", "\n")
	var got []string
	for _, block := range blocksOf(t, "here", lines) {
		for _, step := range block.steps(t, "here") {
			got = append(got, step.terminal+": "+step.command+" => "+strings.Join(step.shown, "|"))
		}
	}
	want := "first: one \\\n  more => shown\n: two => \nfirst: ^C => \n: three <<EOF\n$ four\nEOF => \n: cat >a.py <<'SAVED'\nfive\nSAVED => "
	if strings.Join(got, "\n") != want {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}
