package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// lists are the settings that are lists, each with an element.
func lists(t *testing.T) map[string]string {
	t.Helper()
	known := map[string]string{"listen": "127.0.0.1:1", "tls-trust-domain": "a.example=/a", "zookeeper": "a:1"}
	new(settings).flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Value.Type() != "stringSlice" {
			return
		}
		if _, isList := flag.Value.(*list); !isList || known[flag.Name] == "" {
			t.Errorf("--%s is no list of ours, or not tried", flag.Name)
		}
	})
	return known
}

func TestBlanksAroundTheElementsOfAListDoNotCount(t *testing.T) {
	t.Parallel()
	for name, one := range lists(t) {
		for text, want := range map[string]int{
			one: 1, " " + one: 1, one + "\n": 1, one + "," + one: 2, one + ", " + one: 2, "\t" + one + " ,\n" + one: 2, "": 0, " ": 0,
		} {
			line, variables := new(settings).flags(), new(settings).flags()
			err := line.Parse([]string{"--" + name + "=" + text})
			if err == nil {
				err = fillFrom(func(asked string) (string, bool) { return text, asked == variable(name) }, variables)
			}
			shown := ""
			if want > 0 {
				shown = "[" + strings.Repeat(","+one, want)[1:] + "]"
			}
			for _, flags := range []*pflag.FlagSet{line, variables} {
				if got := flags.Lookup(name).Value.String(); err != nil || got != shown {
					t.Errorf("--%s %q: %s, %v; want %s", name, text, got, err, shown)
				}
			}
		}
	}
}

func TestBlanksWithinAnElementOfAListAreRefused(t *testing.T) {
	t.Parallel()
	for name, one := range lists(t) {
		for text, rule := range map[string]string{
			one + " " + one:   `%q: an element has no blanks within it: commas separate elements`,
			one + ",x\ny":     `"x\ny": an element has no blanks within it: commas separate elements`,
			one + ",":         `%q: an element is missing beside a comma`,
			one + ", ," + one: `%q: an element is missing beside a comma`,
		} {
			want := strings.ReplaceAll(rule, "%q", `"`+text+`"`)
			if name != "zookeeper" && strings.Contains(rule, "within it") {
				if err := new(settings).flags().Parse([]string{"--" + name + "=" + text}); err != nil {
					t.Errorf("--%s %q, a path with a blank: %v", name, text, err)
				}
				continue
			}
			err := new(settings).flags().Parse([]string{"--" + name + "=" + text})
			if err == nil || !strings.Contains(err.Error(), `"--`+name+`" flag: `+want) {
				t.Errorf("--%s %q: %v, want %s", name, text, err, want)
			}
			err = fillFrom(func(asked string) (string, bool) { return text, asked == variable(name) }, new(settings).flags())
			if err == nil || !strings.HasPrefix(err.Error(), variable(name)+" is ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s=%q: %v, want %s", variable(name), text, err, want)
			}
		}
	}
}
