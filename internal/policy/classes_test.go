package policy

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheFirstClassWhosePrefixANameLiesUnderIsItsClass(t *testing.T) {
	policy := parse(t, `
rules: []
classes:
  - name: checkout
    prefixes: [shop/orders, shop/stock]
  - name: shop
    prefixes: [shop]
`)
	for name, want := range map[string]string{
		"shop/orders": "checkout", "shop/stock/7": "checkout", "shop/orders-7": "shop", "shop": "shop", "shopping": DefaultClass, "a": DefaultClass,
	} {
		if got := policy.Class(name); got != want {
			t.Errorf("%s: class %s; want %s", name, got, want)
		}
	}
	if got := parse(t, "rules: []\nclasses: [{name: all, prefixes: ['*']}]").Class("a"); got != "all" {
		t.Errorf("below *: class %s", got)
	}
	if got := parse(t, "rules: []").Class("a"); got != DefaultClass {
		t.Errorf("without classes: class %s", got)
	}
}

func TestWrongClassesAreRefused(t *testing.T) {
	many := strings.Repeat("{name: a, prefixes: [a]},", mostClasses+1)
	for classes, want := range map[string]string{
		"{prefixes: [a]}":                     "classes[0].name is missing",
		"{name: a}":                           "classes[0].prefixes is missing",
		"{name: A, prefixes: [a]}":            `classes[0].name is "A"`,
		"{name: 7, prefixes: [a]}":            `classes[0].name is "7"`,
		"{name: a, prefixes: []}":             "classes[0].prefixes is empty",
		"{name: a, prefixes: ['{identity}']}": "without {identity}",
		"{name: a, prefixes: [a], lock: b}":   `a field of classes[0] is "lock"`,
		many:                                  fmt.Sprintf("classes is of %d: at most %d", mostClasses+1, mostClasses),
	} {
		_, err := Parse("p.yaml", []byte("rules: []\nclasses: ["+classes+"]"), actions, nameRule)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v; want %s", classes, err, want)
		}
	}
}
