package alerts

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

const runbook = "https://github.com/sidekeeper/sidekeeper/blob/main/docs/runbook.md"

var (
	documented   = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([^|]+) \\|([^|]*)\\|")
	word         = regexp.MustCompile("`(\\w+)`")
	reason       = regexp.MustCompile(`(?m)^  REASON_(\w+) = \d+;`)
	alertSection = regexp.MustCompile(`(?m)^### (Sidekeeper\w+)$`)
)

// ofPrometheus are what Prometheus adds to every scrape, and how it names what it scrapes.
var (
	ofPrometheus    = []string{"up"}
	labelsOfScrapes = []string{"cluster", "namespace", "job", "pod", "instance", "le"}
)

// A metric is what docs/metrics.md says of one; that the sidecar shows the same is tested where it is.
type metric struct {
	kind   string
	unit   string
	labels map[string][]string // with their values, if the document tells them
}

func metrics(t *testing.T) map[string]metric {
	t.Helper()
	found := map[string]metric{}
	for _, row := range documented.FindAllStringSubmatch(read(t, "../../docs/metrics.md"), -1) {
		of := metric{row[2], row[3], map[string][]string{}}
		for part := range strings.SplitSeq(row[4], ";") {
			names, values, _ := strings.Cut(part, ":")
			for _, name := range word.FindAllStringSubmatch(names, -1) {
				of.labels[name[1]] = nil
				for _, value := range word.FindAllStringSubmatch(values, -1) {
					of.labels[name[1]] = append(of.labels[name[1]], value[1])
				}
				if strings.Contains(values, "every reason of ") {
					of.labels[name[1]] = reasons(t)
				}
			}
		}
		found[row[1]] = of
	}
	if len(found) == 0 {
		t.Fatal("docs/metrics.md has no metric that this test can read")
	}
	return found
}

func reasons(t *testing.T) (all []string) {
	t.Helper()
	for _, match := range reason.FindAllStringSubmatch(read(t, "../../proto/sidekeeper/errors/v1/errors.proto"), -1) {
		all = append(all, match[1])
	}
	return all
}

func TestEveryMetricInAlertsIsOneThatTheSidecarShows(t *testing.T) {
	known := metrics(t)
	for _, rule := range rules(t) {
		checkExpression(t, known, rule.Alert, rule.Expr)
	}
}

func TestEveryMetricInTheDashboardIsOneThatTheSidecarShows(t *testing.T) {
	known := metrics(t)
	used := map[string]bool{}
	for _, expression := range dashboard(t).expressions() {
		for _, name := range checkExpression(t, known, "the dashboard", filled(expression)) {
			used[name] = true
		}
	}
	for name := range known {
		if strings.HasPrefix(name, "sidekeeper_") && !used[name] && !slices.Contains(notDrawn, name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// notDrawn are metrics that the dashboard has no use for.
var notDrawn = []string{
	"sidekeeper_draining", "sidekeeper_policy_refused", "sidekeeper_connection_limit", "sidekeeper_lease_seconds", "sidekeeper_member_seconds",
	"sidekeeper_certificate_not_before_timestamp_seconds",
}

// checkExpression fails unless every metric, label and value in an expression exists. It returns the metrics.
func checkExpression(t *testing.T, known map[string]metric, where, expression string) (used []string) {
	t.Helper()
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %s: %v", where, expression, err)
		return nil
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, is := node.(*parser.VectorSelector)
		if !is || slices.Contains(ofPrometheus, selector.Name) {
			return nil
		}
		name := selector.Name
		of, there := known[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, cut := strings.CutSuffix(name, suffix); cut && known[base].kind == "histogram" {
				name, of, there = base, known[base], true
			}
		}
		if !there {
			t.Errorf("%s asks for %s, which docs/metrics.md does not know", where, selector.Name)
			return nil
		}
		used = append(used, name)
		for _, matcher := range selector.LabelMatchers {
			checkMatcher(t, where, name, of, matcher)
		}
		return nil
	})
	return used
}

func checkMatcher(t *testing.T, where, name string, of metric, matcher *labels.Matcher) {
	t.Helper()
	if matcher.Name == labels.MetricName || slices.Contains(labelsOfScrapes, matcher.Name) {
		return
	}
	values, there := of.labels[matcher.Name]
	if !there {
		t.Errorf("%s asks for label %s of %s, which has none", where, matcher.Name, name)
	}
	if values != nil && !slices.ContainsFunc(values, matcher.Matches) {
		t.Errorf("%s asks for %s of %s, which no value matches", where, matcher, name)
	}
}

func TestEveryAlertLeadsToItsSectionInTheRunbook(t *testing.T) {
	sections := map[string]bool{}
	for _, section := range alertSection.FindAllStringSubmatch(read(t, "../../docs/runbook.md"), -1) {
		sections[section[1]] = true
	}
	alerts := map[string]bool{}
	for _, rule := range rules(t) {
		alerts[rule.Alert] = true
		if want := runbook + "#" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
		}
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has severity %q", rule.Alert, severity)
		}
		for _, name := range []string{"summary", "description"} {
			if rule.Annotations[name] == "" {
				t.Errorf("%s has no %s", rule.Alert, name)
			}
			if _, err := templated(rule.Annotations[name]); err != nil {
				t.Errorf("%s: %s: %v", rule.Alert, name, err)
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(alerts)), slices.Sorted(maps.Keys(sections))); diff != "" {
		t.Errorf("alerts without a section, or sections without an alert (-alerts +docs/runbook.md):\n%s", diff)
	}
}

// templated parses what Prometheus fills in.
func templated(text string) (*template.Template, error) {
	said := func(value any) any { return value }
	functions := template.FuncMap{"humanize": said, "humanizeDuration": said, "humanizePercentage": said}
	return template.New("").Funcs(functions).Parse("{{ $labels := .Labels }}{{ $value := .Value }}" + text)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
