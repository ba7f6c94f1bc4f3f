package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

const configurationPath = "../../docs/configuration.md"

func TestThePageOfTheConfigurationShowsEveryFlagAsItIs(t *testing.T) {
	t.Parallel()
	comparePage(t, configurationPath, map[string]string{
		"serve":          serveTables(),
		"read again":     strings.Join(readAgain(), ", ") + ".\n",
		"dev":            flagTable((&devSettings{}).flags(), nil),
		"inject-webhook": flagTable((&injection{}).flags(), nil),
		"validity":       validityTable(),
	})
}

func TestThePageOfLimitsShowsEverySettingThatIsANumberOrATime(t *testing.T) {
	t.Parallel()
	numbers := pflag.NewFlagSet("", pflag.ContinueOnError)
	numbers.SortFlags = false
	for _, each := range settingGroups {
		each.of(new(settings).flags()).VisitAll(func(flag *pflag.Flag) {
			if slices.Contains([]string{"int", "duration", "bytes"}, flag.Value.Type()) {
				numbers.AddFlag(flag)
			}
		})
	}
	comparePage(t, "../../docs/limits.md", map[string]string{"settings": flagTable(numbers, rulesByFlag())})
}

// comparePage compares what stands between the marks of a page with what should.
func comparePage(t *testing.T, path string, parts map[string]string) {
	t.Helper()
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(written)
	for name, wanted := range parts {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
		before, rest, begins := strings.Cut(page, begin)
		_, after, ends := strings.Cut(rest, end)
		if !begins || !ends {
			t.Fatalf("%s has no lines %q and %q", path, begin, end)
		}
		page = before + begin + "\n" + wanted + "\n" + end + after
	}
	compareOrUpdate(t, path, string(written), page)
}

func TestEverySettingBelongsToOneSubject(t *testing.T) {
	t.Parallel()
	var named []string
	for _, each := range settingGroups {
		named = append(named, each.flags...)
	}
	var flags []string
	new(settings).flags().VisitAll(func(each *pflag.Flag) { flags = append(flags, each.Name) })
	slices.Sort(named)
	slices.Sort(flags)
	if !slices.Equal(named, flags) {
		t.Errorf("the subjects have the flags\n%s\nand serve has\n%s", named, flags)
	}
}

// validityTable is what the defaults make of session timeouts.
func validityTable() string {
	s, text := new(settings), strings.Builder{}
	s.flags()
	text.WriteString("| session timeout | valid just after a heartbeat, at best | and just before the next one, at worst | " +
		"loss of contact that loses nothing |\n|---:|---:|---:|---:|\n")
	for _, seconds := range []int{4, 6, 8, 10, 15, 30} {
		s.ensemble.SessionTimeout = time.Duration(seconds) * time.Second
		valid := s.validity()
		fmt.Fprintf(&text, "| %d s | %.1f s | %.1f s | %.1f s |\n", seconds,
			tenths(valid.Most), tenths(valid.Least), tenths(valid.Silence))
	}
	return text.String()
}

// tenths is in seconds, without what is less than a tenth.
func tenths(d time.Duration) float64 { return d.Truncate(100 * time.Millisecond).Seconds() }

// serveTables is the settings of the sidecar, subject by subject.
func serveTables() string {
	var text strings.Builder
	for i, each := range settingGroups {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "### %s\n\n%s", each.title, flagTable(each.of(new(settings).flags()), rulesByFlag()))
	}
	return text.String()
}

// flagTable is flags in Markdown, in their order.
func flagTable(flags *pflag.FlagSet, rules map[string][]string) string {
	var text strings.Builder
	text.WriteString("| flag | variable | default | value | meaning |\n|---|---|---|---|---|\n")
	flags.VisitAll(func(each *pflag.Flag) {
		kind, help := pflag.UnquoteUsage(each)
		value := strings.Join(append([]string{valueWords(each, kind)}, rules[each.Name]...), "; ")
		fmt.Fprintf(&text, "| `--%s` | `%s` | %s | %s | %s |\n",
			each.Name, variable(each.Name), defaultOf(each), value, strings.ReplaceAll(help, "|", `\|`))
	})
	return text.String()
}

// valueWords says what a flag takes.
func valueWords(flag *pflag.Flag, kind string) string {
	if words, ok := flag.Value.(*choice); ok {
		return "`" + strings.Join(words.values, "`, `") + "`"
	}
	switch flag.Value.Type() {
	case "duration":
		return "duration"
	case "bytes":
		return "bytes"
	case "mode":
		return "permissions in octal"
	case "bool":
		return "`true` or `false`"
	case "int":
		return "whole number"
	case "uint16":
		return "0 to 65535"
	case "stringSlice":
		return strings.TrimSuffix(kind, ",…") + ", several with commas"
	default:
		return kind
	}
}

// rulesByFlag is what the rules say, but for those that only say that something is missing.
func rulesByFlag() map[string][]string {
	rules := map[string][]string{}
	s := &settings{}
	s.ensemble.Servers = []string{"zk-1:2181"}
	for _, each := range s.rules() {
		if !strings.HasSuffix(each.text, "required") {
			rules[each.flag] = append(rules[each.flag], each.text)
		}
	}
	return rules
}

// readAgain is the flags whose files may change while the sidecar runs.
func readAgain() (names []string) {
	new(settings).flags().VisitAll(func(each *pflag.Flag) {
		if strings.Contains(each.Usage, "reloaded when") {
			names = append(names, "`--"+each.Name+"`")
		}
	})
	return names
}

func defaultOf(flag *pflag.Flag) string {
	value := strings.Trim(flag.DefValue, "[]")
	if value == "" {
		return ""
	}
	return "`" + value + "`"
}
