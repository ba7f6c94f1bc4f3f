package house

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// limitsPage tells what a request may hold and what an answer shows, each with the constant that bounds it.
const limitsPage = "docs/limits.md"

var (
	limitRow   = regexp.MustCompile(`(?m)^\|[^|\n]+\| ([0-9][0-9,]*)( [A-Za-z]+)?[^|\n]*\| (\[.+\)) \|$`)
	callerRow  = regexp.MustCompile(`(?m)^\|[^|\n]+\| ([^|\n]+) \|[^|\n]+\|[^|\n]+\| (\[.+\)) \|$`)
	limitLink  = regexp.MustCompile("\\[`(\\w+)`\\]\\(\\.\\./([^)]+)\\)")
	namesLimit = regexp.MustCompile(`^(most|longest|largest|Most|Longest|Largest|max|Max)[A-Z]\w*$`)
)

// limited are the folders in which each limit has a row of the page, or a reason for none.
var limited = []string{"service", "recipes", "internal/budget", "internal/fields", "internal/httpconns"}

// waysToWrite are those of a number, of bytes and of time among them.
func waysToWrite(value int64) []string {
	ways := []string{strconv.FormatInt(value, 10)}
	for _, unit := range []struct {
		of   int64
		name string
	}{{1 << 10, "KiB"}, {1 << 20, "MiB"}, {1e9, "s"}} {
		if value%unit.of == 0 {
			ways = append(ways, strconv.FormatInt(value/unit.of, 10)+" "+unit.name)
		}
	}

	return ways
}

// units are what a value on the page is counted in; without any of them, one by one.
var units = map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "seconds": 1e9, "minutes": 60e9, "hours": 3600e9}

// inner are limits that no caller meets, and why they are there.
var inner = map[string]string{
	"longestFault":   "faults of sidekeeper dev alone",
	"LongestTimeout": "bounds what is read from a node that anybody may have written",
	"maxAbout":       "longer than anything of ours; what is longer is not shown",
	"maxAttempts":    "how often a write begins anew when others overtake it",
	"maxEndText":     "the reason of an end, as long as it may be asked for",
	"maxGrace":       "a grace as long as it may be asked for, read from a node that anybody may have written",
	"maxMemberData":  "longer than anything of ours; what is longer is not shown",
	"mostAtDisk":     "threads that wait for the disk of the state directory; further leases wait for them",
	"mostLosses":     "holds that were lost, as far as a process remembers when: beyond that, a delay is counted anew",
	"mostPassed":     "writes of a new directory so that its version passes that of the one before it",
	"longestBreak":   "how long a connection that is read slowly waits at a time",
	"longestHeaders": "headers over HTTP, as many as over gRPC",
	"largestBlock":   "numbers reserved ahead of RELAXED callers",
	"MostBytes":      "bounds what a Commit and a value may have, with room for what goes with them",
	"mostClearings":  "how often a deletion begins anew when others overtake it",
	"mostDeletions":  "nodes deleted in one transaction of a deletion that is none",
	"mostIssuers":    "sequences whose reserved numbers are remembered; the others reserve anew",
	"mostRests":      "items whose rests a sidecar remembers; beyond that, they are read again",
	"mostUnsent":     "answers of a stream that is not read, which ends after ten seconds anyway",
}

func TestThePageOfLimitsTellsEachAsItIs(t *testing.T) {
	t.Parallel()

	told := map[string]bool{}

	for _, row := range limitRow.FindAllStringSubmatch(read(t, limitsPage), -1) {
		value, err := strconv.ParseInt(strings.ReplaceAll(row[1], ",", ""), 10, 64)
		if err != nil {
			t.Fatal(err)
		}

		value *= max(1, units[strings.TrimSpace(row[2])])

		for _, link := range limitLink.FindAllStringSubmatch(row[3], -1) {
			told[link[1]] = true

			if got := limitsIn(t, link[2], read(t, link[2]))[link[1]]; got != value {
				t.Errorf("%s says %s%s of %s, which is %d in %s", limitsPage, row[1], row[2], link[1], got, link[2])
			}
		}
	}

	for _, row := range callerRow.FindAllStringSubmatch(read(t, limitsPage), -1) {
		for _, link := range limitLink.FindAllStringSubmatch(row[2], -1) {
			told[link[1]] = true
			value, is := limitsIn(t, link[2], read(t, link[2]))[link[1]]

			written := regexp.MustCompile(`(^|[^\w.])(` + strings.Join(waysToWrite(value), "|") + `)($|[^\w])`)
			if !is || !written.MatchString(row[0]) {
				t.Errorf("%s does not say %d, which is %s in %s: %s", limitsPage, value, link[1], link[2], row[0])
			}
		}
	}

	if len(told) == 0 {
		t.Fatalf("%s tells no limit: this test would prove nothing", limitsPage)
	}

	there := map[string]bool{}

	for _, file := range files(t, ".go") {
		if folder := path.Dir(file.path); file.isTest() || !slices.Contains(limited, folder) {
			continue
		}

		for name := range limitsIn(t, file.path, file.text) {
			there[name] = true

			if namesLimit.MatchString(name) && !told[name] && inner[name] == "" {
				t.Errorf("%s does not tell %s of %s", limitsPage, name, file.path)
			}
		}
	}

	for name := range inner {
		if !there[name] {
			t.Errorf("there is no %s any more", name)
		}
	}
}

// limitsIn are the whole numbers among the constants of a file, durations in nanoseconds, by their names.
func limitsIn(t *testing.T, name, text string) map[string]int64 {
	t.Helper()

	parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}

	found := map[string]int64{}

	for _, declaration := range parsed.Decls {
		constants, is := declaration.(*ast.GenDecl)
		if !is || constants.Tok != token.CONST {
			continue
		}

		for _, each := range constants.Specs {
			if each, is := each.(*ast.ValueSpec); is && len(each.Values) == 1 {
				if value, is := numberOf(each.Values[0]); is {
					found[each.Names[0].Name] = value
				}
			}
		}
	}

	return found
}

var durations = strings.NewReplacer("time.Millisecond", "1000000", "time.Second", "1000000000", "time.Minute", "60000000000",
	"time.Hour", "3600000000000")

// numberOf is what an expression of numbers and durations comes to.
func numberOf(expression ast.Expr) (int64, bool) {
	evaluated, err := types.Eval(token.NewFileSet(), nil, token.NoPos, durations.Replace(types.ExprString(expression)))
	if err != nil || evaluated.Value == nil || evaluated.Value.Kind() != constant.Int {
		return 0, false
	}

	return constant.Int64Val(evaluated.Value)
}
