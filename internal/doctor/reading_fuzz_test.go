package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A sickbed is an ensemble of one server that answers whatever it is told to, and in which each node has the same
// children and data.
type sickbed struct {
	recipes.Tree

	answer, data string
	children     []string
}

func (s sickbed) Ask(context.Context, string, string) (string, error) { return s.answer, nil }

func (s sickbed) Inspect(_ context.Context, path string) (zookeeper.Inspection, error) {
	owner := int64(strings.Count(path, "/") - 3) // nothing lies deeper than in a lock's directory
	return zookeeper.Inspection{Node: recipes.Node{Owner: max(0, owner)}}, nil
}

func (s sickbed) Demand(context.Context, string) (zookeeper.Demand, error) {
	return zookeeper.Demand{Authentication: strings.HasPrefix(s.answer, "Z"), Mechanism: s.data, As: s.data}, nil
}

func (s sickbed) WhoAmI(context.Context) ([]string, error) { return s.children, nil }

func (s sickbed) Get(context.Context, string) (recipes.Node, error) {
	return recipes.Node{Data: []byte(s.data)}, nil
}

func (s sickbed) Children(_ context.Context, path string) ([]string, error) {
	if strings.Count(path, "/") > 3 {
		return nil, nil
	}
	return s.children, nil
}

// Whatever servers answer and directories hold, it is looked at to the end, each finding is about something, and what is
// taken for a contender is what the locks themselves take for one.
func FuzzExaminations(f *testing.F) {
	f.Add("Zookeeper version: 3.9.5-x, built\nMode: leader\n", "server.1=h:1:2:participant\nversion=1", "x-lock-0000000001\ny")
	f.Add("tickTime=2000\nsyncLimit=5\nmaxClientCnxns=0\n", "server.:observer\nserver.", "a__lock__0000000001\nlock-0000000001")
	f.Add("Zookeeper version: 99999999999999999999.1.1\nMode: \n", "", "lock-+000000001\nlock--000000001\nlock-2147483647\n-latch-0000000000")
	f.Add("tickTime=99999999999999999999\nsyncLimit=\nmaxSessionTimeout=x=y\n", "\xff", "\xff\n..\n%2F\n")
	f.Fuzz(func(t *testing.T, answer, data, children string) {
		names := strings.Split(strings.ReplaceAll(children, "/", ""), "\n")
		bed := sickbed{answer: answer, data: data, children: names}
		settings := Settings{Servers: []string{"a:1", "b:2"}, Root: "/sidekeeper", LockRoot: "/sidekeeper/locks", MostLeases: 10, SASL: true}
		findings, err := Examine(t.Context(), bed, settings, []string{"/sidekeeper/locks/orders"})
		if err != nil {
			t.Error(err)
		}
		for _, found := range findings {
			if found.About == "" || found.Text == "" || found.Severity < Note || found.Severity > Problem {
				t.Errorf("%+v", found)
			}
			if _, err := found.Severity.MarshalText(); err != nil {
				t.Error(err)
			}
		}
		for _, name := range names {
			if utf8.ValidString(name) {
				agrees(t, name)
			}
		}
	})
}

// agrees fails the test unless a child is judged here as it is by those who wait for it.
func agrees(t *testing.T, name string) {
	t.Helper()
	of := familyOf(name)
	contenders, _, err := recipes.Lock{Path: "/l"}.Contenders(t.Context(), sickbed{children: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	isOurs := of != stranger && !strings.HasPrefix(fmt.Sprint(of), "Curator's ")
	if isOurs != (contenders == 1) {
		t.Errorf("%q is of the family %q here, and for locks there are %d contenders", name, of, contenders)
	}
}
