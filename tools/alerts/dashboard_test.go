package alerts

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
)

// A board is what of the dashboard is tested.
type board struct {
	Panels     []panel `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []annotation `json:"list"`
	} `json:"annotations"`
}

type panel struct {
	ID      int      `json:"id"`
	Title   string   `json:"title"`
	Targets []target `json:"targets"`
	At      struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Fields struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
}

type target struct {
	Expr       string            `json:"expr"`
	Datasource map[string]string `json:"datasource"`
}

type variable struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
	AllValue   string `json:"allValue"`
}

type annotation struct {
	Name string `json:"name"`
	target

	Target target `json:"target"`
}

func dashboard(t *testing.T) board {
	t.Helper()
	var board board
	if err := json.Unmarshal([]byte(read(t, "../../helm/sidekeeper/dashboards/sidekeeper.json")), &board); err != nil {
		t.Fatal(err)
	}
	if len(board.expressions()) == 0 {
		t.Fatal("the dashboard shows nothing")
	}
	return board
}

// expressions are those of all panels and annotations.
func (b board) expressions() (all []string) {
	for _, panel := range b.Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	for _, annotation := range b.Annotations.List {
		all = append(all, annotation.Expr)
	}
	return all
}

// choices are the variables that choose sidecars, from the widest to the narrowest.
var choices = []string{"cluster", "namespace", "job", "pod", "instance"}

// filled is an expression as Grafana sends it when all sidecars are chosen.
func filled(expression string) string {
	values := []string{"$__rate_interval", "5m"}
	for _, name := range choices {
		values = append(values, "$"+name, ".*")
	}
	return strings.NewReplacer(values...).Replace(expression)
}

// chosen are the matchers of the first so many choices.
func chosen(count int) string {
	var matchers []string
	for _, name := range choices[:count] {
		matchers = append(matchers, fmt.Sprintf(`%s=~"$%s"`, name, name))
	}
	return strings.Join(matchers, ",")
}

func TestTheDashboardAsksTheDataSourceThatIsChosen(t *testing.T) {
	board := dashboard(t)
	if len(board.Templating.List) == 0 || board.Templating.List[0].Name != "datasource" {
		t.Error("the dashboard has no variable for its data source")
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			if target.Datasource["uid"] != "${datasource}" {
				t.Errorf("%s does not ask the data source that is chosen", panel.Title)
			}
		}
	}
	for _, annotation := range board.Annotations.List {
		if annotation.Datasource["uid"] != "${datasource}" {
			t.Errorf("the annotation %s does not ask the data source that is chosen", annotation.Name)
		}
	}
}

func TestEachChoiceOfTheDashboardNarrowsTheNextAndAllThatIsShown(t *testing.T) {
	board := dashboard(t)
	var got, want []variable
	for i, name := range choices {
		selector := strings.TrimSuffix("{"+chosen(i)+"}", "{}")
		want = append(want, variable{name, fmt.Sprintf("label_values(sidekeeper_lease_limit%s, %s)", selector, name), ".*"})
	}
	got = board.Templating.List[1:]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +dashboard):\n%s", diff)
	}
	selector := regexp.MustCompile(`\{[^}]*\}`)
	for _, expression := range board.expressions() {
		all := selector.FindAllString(expression, -1)
		if len(all) == 0 || slices.ContainsFunc(all, func(one string) bool { return !strings.HasPrefix(one, "{"+chosen(len(choices))) }) {
			t.Errorf("what is chosen does not narrow %s", expression)
		}
	}
}

// unitsOfGrafana are its names for units of expressions.
var unitsOfGrafana = map[string][]string{
	"": {"none", "short"}, "seconds": {"s"}, "bytes": {"bytes"}, "ratio": {"percentunit"}, "per second": {"cps", "reqps"}, "per minute": {"cpm"},
}

func TestAPanelOfTheDashboardHasOneUnit(t *testing.T) {
	known := metrics(t)
	for _, panel := range dashboard(t).Panels {
		for _, target := range panel.Targets {
			unit := unitOf(t, known, target.Expr)
			if unit == "seconds per second" { // cores
				unit = ""
			}
			if !slices.Contains(unitsOfGrafana[unit], panel.Fields.Defaults.Unit) {
				t.Errorf("%s has unit %q and shows %q: %s", panel.Title, panel.Fields.Defaults.Unit, unit, target.Expr)
			}
		}
	}
}

// unitOf is the unit of what an expression tells; empty for a number of things.
func unitOf(t *testing.T, known map[string]metric, expression string) string {
	t.Helper()
	parsed, err := parser.ParseExpr(filled(expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return unitIn(known, parsed)
}

func unitIn(known map[string]metric, node parser.Node) string {
	switch node := node.(type) {
	case *parser.BinaryExpr:
		return unitOfBoth(node, unitIn(known, node.LHS))
	case *parser.AggregateExpr:
		if node.Op == parser.COUNT {
			return ""
		}
		return unitIn(known, node.Expr)
	case *parser.Call:
		switch node.Func.Name {
		case "rate":
			return strings.TrimPrefix(unitIn(known, node.Args[0])+" per second", " ")
		case "histogram_quantile":
			return "seconds" // as all histograms
		case "vector":
			return ""
		}
		return unitIn(known, node.Args[0])
	case *parser.MatrixSelector:
		return unitIn(known, node.VectorSelector)
	case *parser.ParenExpr:
		return unitIn(known, node.Expr)
	case *parser.VectorSelector:
		if strings.HasSuffix(node.Name, "_count") {
			return ""
		}
		if unit := known[node.Name].unit; unit == "seconds" || unit == "bytes" || unit == "seconds since 1970" {
			return unit
		}
		return ""
	}
	return ""
}

// unitOfBoth is the unit of an operation, by that of what is left of it.
func unitOfBoth(of *parser.BinaryExpr, left string) string {
	switch of.Op {
	case parser.SUB:
		if of.RHS.String() == "time()" {
			return strings.TrimSuffix(left, " since 1970")
		}
	case parser.MUL:
		if of.RHS.String() == "60" {
			return strings.TrimSuffix(left, "per second") + "per minute"
		}
	case parser.DIV:
		return "ratio"
	}
	return left
}

func TestLossesAreMarkedInTheDashboard(t *testing.T) {
	var marked []string
	for _, annotation := range dashboard(t).Annotations.List {
		if annotation.Expr != annotation.Target.Expr {
			t.Errorf("%s asks older releases of Grafana for something else than newer ones", annotation.Name)
		}
		marked = append(marked, regexp.MustCompile(`sidekeeper_\w+`).FindString(annotation.Expr))
	}
	want := []string{
		"sidekeeper_lease_losses_total", "sidekeeper_hold_losses_total", "sidekeeper_member_losses_total", "sidekeeper_ensemble_restores_total",
	}
	if diff := cmp.Diff(want, marked); diff != "" {
		t.Errorf("annotations (-want +dashboard):\n%s", diff)
	}
}

func TestPanelsOfTheDashboardDoNotOverlap(t *testing.T) {
	type cell struct{ x, y int }
	taken := map[cell]int{}
	seen := map[int]bool{}
	for _, panel := range dashboard(t).Panels {
		if seen[panel.ID] || panel.At.X+panel.At.W > 24 {
			t.Errorf("%s has the id of another panel, or stands beyond the edge", panel.Title)
		}
		seen[panel.ID] = true
		for x := range panel.At.W {
			for y := range panel.At.H {
				at := cell{panel.At.X + x, panel.At.Y + y}
				if taken[at] != 0 {
					t.Fatalf("%s stands on panel %d", panel.Title, taken[at])
				}
				taken[at] = panel.ID
			}
		}
	}
}
