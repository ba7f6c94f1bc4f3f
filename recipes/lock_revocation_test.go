package recipes

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestRevocationIsUnderstoodInItsThreeForms(t *testing.T) {
	ours := About{Owner: "worker", Metadata: map[string]string{"host": "a"}}.encode()
	for data, want := range map[string]Revocation{
		"":                                 {},
		"10.0.0.1":                         {},
		"unlock":                           {Asked: true},
		"__REVOKE__":                       {Asked: true},
		"unlock\n":                         {},
		string(ours):                       {},
		`{"revoke":{"break":true}}`:        {},
		`{"sidekeeper":"yes","revoke":{}}`: {},
		`{"sidekeeper":1,"revoke":{}}`:     {Asked: true},
		`{"sidekeeper":1,"revoke":{"grace_ms":-5}}`:                  {Asked: true, Grace: new(time.Duration(0))},
		`{"sidekeeper":1,"revoke":{"grace_ms":1000000000000000000}}`: {Asked: true, Grace: new(24 * time.Hour)},
		`{"sidekeeper":1,"revoke":{"by":"ann","break":true}}`:        {Asked: true, By: "ann", Break: true},
	} {
		if diff := cmp.Diff(want, revocationIn([]byte(data))); diff != "" {
			t.Errorf("%s: %s", data, diff)
		}
	}
}

func TestAMarkKeepsWhatAContenderSaysAboutItself(t *testing.T) {
	about := About{Owner: "worker", Metadata: map[string]string{"host": "a"}}
	asked := Revocation{Asked: true, By: "ann", Reason: "upgrade", Grace: new(1500 * time.Millisecond)}
	marked := asked.mark(about.encode())
	if diff := cmp.Diff(asked, revocationIn(marked)); diff != "" {
		t.Error(diff)
	}
	kept, foreign := aboutIn(marked)
	if diff := cmp.Diff(about, kept); diff != "" || foreign {
		t.Error(diff, foreign)
	}
}

func TestAskingAgainChangesWordsAndNeverProlongsAGrace(t *testing.T) {
	data := About{Owner: "worker"}.encode()
	for _, step := range []struct{ asked, want Revocation }{
		{Revocation{By: "ann"}, Revocation{Asked: true, By: "ann"}},
		{Revocation{By: "bob", Grace: new(time.Minute)}, Revocation{Asked: true, By: "bob", Grace: new(time.Minute)}},
		{Revocation{By: "cyd", Grace: new(time.Hour)}, Revocation{Asked: true, By: "cyd", Grace: new(time.Minute)}},
		{Revocation{By: "dan"}, Revocation{Asked: true, By: "dan", Grace: new(time.Minute)}},
		{Revocation{Grace: new(time.Second)}, Revocation{Asked: true, Grace: new(time.Second)}},
		{Revocation{Break: true}, Revocation{Asked: true, Grace: new(time.Second), Break: true}},
		{Revocation{By: "eve"}, Revocation{Asked: true, By: "eve", Grace: new(time.Second), Break: true}},
	} {
		data = step.asked.mark(data)
		if diff := cmp.Diff(step.want, revocationIn(data)); diff != "" {
			t.Errorf("after %+v: %s", step.asked, diff)
		}
	}
}

func TestForeignHoldersAreAskedInTheirForm(t *testing.T) {
	for _, test := range []struct {
		data  string
		asked Revocation
		want  string
	}{
		{"10.0.0.1", Revocation{By: "ann"}, "__REVOKE__"},
		{"10.0.0.1", Revocation{Break: true}, "__REVOKE__"},
		{"", Revocation{Grace: new(time.Second)}, "__REVOKE__"},
		{`{"owner":"theirs"}`, Revocation{}, "__REVOKE__"},
		{"__REVOKE__", Revocation{By: "ann"}, "__REVOKE__"},
		{"unlock", Revocation{By: "ann"}, "unlock"},
		{"unlock", Revocation{Break: true}, `{"sidekeeper":1,"revoke":{"break":true}}`},
		{"__REVOKE__", Revocation{Grace: new(time.Second)}, `{"sidekeeper":1,"revoke":{"grace_ms":1000}}`},
	} {
		if got := string(test.asked.mark([]byte(test.data))); got != test.want {
			t.Errorf("%q becomes %q, not %q", test.data, got, test.want)
		}
	}
}

func TestForeignDataIsShownIfItIsText(t *testing.T) {
	for data, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "\xff\x00": "", "unlock": "", "__REVOKE__": "",
		strings.Repeat("é", 200): strings.Repeat("é", 64), "a" + strings.Repeat("é", 200): "a" + strings.Repeat("é", 63),
	} {
		about, foreign := aboutIn([]byte(data))
		if about.Owner != want || !foreign {
			t.Errorf("%q is shown as %q, foreign %v", data, about.Owner, foreign)
		}
	}
}

func FuzzData(f *testing.F) {
	for _, seed := range []string{"", "unlock", "__REVOKE__", `{"sidekeeper":1}`, `{"sidekeeper":1,"revoke":{"grace_ms":9}}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		about, foreign := aboutIn(data)
		if foreign && (!utf8.ValidString(about.Owner) || len(about.Owner) > maxForeignOwner) {
			t.Errorf("owner %q", about.Owner)
		}
		marked := Revocation{By: "ann", Grace: new(time.Second)}.mark(data)
		if !utf8.Valid(marked) || !revocationIn(marked).Asked {
			t.Errorf("%q is marked as %q", data, marked)
		}
		again := Revocation{By: "ann", Grace: new(time.Second)}.mark(marked)
		if json.Valid(marked) && !bytes.Equal(again, marked) {
			t.Errorf("%q, marked again, is %q", marked, again)
		}
	})
}
