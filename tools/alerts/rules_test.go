package alerts

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"go.yaml.in/yaml/v3"
)

// A rule is one alert as Prometheus reads it.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// A story is series that go on for a while, and which alerts fire when. The form is that of `promtool test rules`.
type story struct {
	Name        string `yaml:"name"`
	Interval    string `yaml:"interval"`
	InputSeries []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	AlertRuleTest []struct {
		EvalTime  string `yaml:"eval_time"`
		Alertname string `yaml:"alertname"`
		ExpAlerts []struct {
			ExpLabels map[string]string `yaml:"exp_labels"`
		} `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	var stories struct {
		RuleFiles          []string `yaml:"rule_files"`
		EvaluationInterval string   `yaml:"evaluation_interval"`
		Tests              []story  `yaml:"tests"`
	}
	load(t, "stories.yaml", &stories)
	same(t, "evaluation interval", duration(t, stories.EvaluationInterval), evaluation)
	told := map[string]map[bool]bool{} // by alert: whether some story has it fire, and not fire
	for _, story := range stories.Tests {
		t.Run(story.Name, func(t *testing.T) { story.run(t, told) })
	}
	for _, rule := range rules(t) {
		if !told[rule.Alert][true] || !told[rule.Alert][false] {
			t.Errorf("no story has %s fire, or none has it not fire", rule.Alert)
		}
	}
}

func (s story) run(t *testing.T, told map[string]map[bool]bool) {
	t.Helper()
	var input strings.Builder
	fmt.Fprintf(&input, "load %s\n", s.Interval)
	for _, series := range s.InputSeries {
		fmt.Fprintf(&input, "  %s %s\n", series.Series, series.Values)
	}
	storage := promqltest.LoadedStorage(t, input.String())
	defer storage.Close()
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	for _, look := range s.AlertRuleTest {
		of := ruleOf(t, look.Alertname)
		var want []string
		for _, alert := range look.ExpAlerts {
			want = append(want, fmt.Sprint(alert.ExpLabels))
		}
		if told[of.Alert] == nil {
			told[of.Alert] = map[bool]bool{}
		}
		told[of.Alert][len(want) > 0] = true
		firing := of.firing(t, duration(t, look.EvalTime), func(at time.Duration) promql.Vector {
			query, err := engine.NewInstantQuery(context.Background(), storage, nil, of.Expr, time.Unix(0, 0).Add(at))
			if err != nil {
				t.Fatal(err)
			}
			defer query.Close()
			vector, err := query.Exec(context.Background()).Vector()
			if err != nil {
				t.Fatalf("%s: %v", of.Alert, err)
			}
			return slices.Clone(vector)
		})
		slices.Sort(want)
		if diff := cmp.Diff(want, firing); diff != "" {
			t.Errorf("%s after %s (-want +got):\n%s", of.Alert, look.EvalTime, diff)
		}
	}
}

// evaluation is how often rules are evaluated.
const evaluation = 15 * time.Second

// firing evaluates the rule from the start until then, and returns the labels of the alerts that fire: those whose expression
// has held, at every evaluation, for as long as the rule says.
func (r rule) firing(t *testing.T, until time.Duration, evaluate func(at time.Duration) promql.Vector) []string {
	t.Helper()
	since := map[string]time.Duration{}
	for at := time.Duration(0); at <= until; at += evaluation {
		held := map[string]time.Duration{}
		for _, sample := range evaluate(at) {
			labels := sample.Metric.Map()
			delete(labels, "__name__")
			maps.Copy(labels, r.Labels)
			name := fmt.Sprint(labels)
			held[name] = at
			if before, holds := since[name]; holds {
				held[name] = before
			}
		}
		since = held
	}
	var firing []string
	for name, began := range since {
		if until-began >= duration(t, r.For) {
			firing = append(firing, name)
		}
	}
	slices.Sort(firing)
	return firing
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if text == "" {
		return 0
	}
	parsed, err := model.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(parsed)
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	load(t, "../../helm/sidekeeper/alerts/sidekeeper.yaml", &file)
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

func ruleOf(t *testing.T, alert string) rule {
	t.Helper()
	for _, rule := range rules(t) {
		if rule.Alert == alert {
			return rule
		}
	}
	t.Fatalf("there is no alert %s", alert)
	return rule{}
}

// load reads YAML and fails on what it does not know, so that no misspelt word is passed over.
func load(t *testing.T, file string, into any) {
	t.Helper()
	open, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	decoder := yaml.NewDecoder(open)
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatal(err)
	}
}
