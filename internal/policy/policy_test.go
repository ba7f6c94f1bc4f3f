package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// actions of a sidecar with two services.
var actions = []Action{
	{Name: "a.Locks/Acquire"},
	{Name: "a.Locks/Revoke"},
	{Name: "a.Locks/Revoke:grace", Operator: true},
	{Name: "a.Locks/Break", Operator: true},
	{Name: "b.Leases/Open"},
	{Name: "c.Groups/Join", Member: true, Takes: []string{"b.Leases/Open"}},
	{Name: "c.Groups/Watch"},
}

// nameRule is a short form of the rule of names.
func nameRule(text string) string {
	if text == "" || strings.HasSuffix(text, "/") || strings.Contains(text, "*") {
		return "a good name"
	}
	return ""
}

func parse(t *testing.T, text string) *Policy {
	t.Helper()
	policy, err := Parse("p.yaml", []byte(text), actions, nameRule)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func TestOnlyWhatARuleAllowsIsAllowed(t *testing.T) {
	policy := parse(t, `
rules:
  - identities: ["uid:1", "socket:app"]
    methods: ["a.Locks/*"]
    prefixes: [billing, stock/eu]
  - identities: ["uid:1"]
    methods: [a.Locks/Acquire]
    prefixes: [audit]
  - identities: ["spiffe://prod/ns/web/*"]
    methods: ["b.Leases/Open", "a.Locks/Break"]
  - identities: ["*"]
    methods: ["a.Locks/Revoke"]
    prefixes: [public]
  - identities: ["dns:all.test", "cert:team/*"]
    methods: ["a.Locks/*"]
    prefixes: ["*"]
  - identities: ["uid:7"]
    methods: ["c.Groups/*"]
    prefixes: [billing]
`)
	for _, c := range []struct {
		identity, action, names string
		want                    bool
	}{
		{"uid:1", "a.Locks/Acquire", "billing", true},
		{"uid:1", "a.Locks/Acquire", "billing/july/1", true},
		{"uid:1", "a.Locks/Acquire", "billings", false},
		{"uid:1", "a.Locks/Acquire", "stock", false},
		{"uid:1", "a.Locks/Acquire", "stock/eu", true},
		{"uid:1", "a.Locks/Acquire", "stock/europe", false},
		{"uid:1", "a.Locks/Acquire", "billing audit/1", true}, // by two rules
		{"uid:1", "a.Locks/Revoke", "billing audit/1", false}, // the second is not about Revoke
		{"uid:1", "a.Locks/Acquire", "billing secret", false},
		{"uid:1", "a.Locks/Acquire", "", true}, // about nothing that has a name
		{"uid:1", "b.Leases/Open", "", false},
		{"uid:7", "b.Leases/Open", "", true}, // who may join may open the lease for it
		{"uid:1", "a.Locks/Acquire", "-", false},
		{"socket:app", "a.Locks/Acquire", "billing", true},
		{"socket:app", "a.Locks/Acquire", "audit", false},
		{"uid:1", "a.Locks/Revoke:grace", "billing", false},
		{"uid:1", "a.Locks/Break", "billing", false},
		{"uid:1", "b.Leases/Open", "", false},
		{"uid:11", "a.Locks/Acquire", "billing", false},
		{"", "a.Locks/Acquire", "billing", false},
		{"spiffe://prod/ns/web/sa/x", "b.Leases/Open", "", true},
		{"spiffe://prod/ns/web/sa/x", "a.Locks/Break", "anything", true},
		{"spiffe://prod/ns/web/sa/x", "a.Locks/Acquire", "anything", false},
		{"spiffe://prod/ns/web", "b.Leases/Open", "", false},
		{"spiffe://prod/ns/website/x", "b.Leases/Open", "", false},
		{"nobody", "a.Locks/Revoke", "public/x", true},
		{"nobody", "a.Locks/Revoke", "private", false},
		{"dns:all.test", "a.Locks/Acquire", "anything -", true},
		{"dns:all.test", "a.Locks/Break", "anything", false},
		{"cert:team/*", "a.Locks/Acquire", "anything", true},
		{"cert:team/eve", "a.Locks/Acquire", "anything", false},
		{"uid:1", "a.Locks/Unknown", "billing", false},
	} {
		names := strings.Fields(c.names)
		for i, name := range names {
			if name == "-" { // the empty prefix
				names[i] = ""
			}
		}
		if got := policy.Allows(c.identity, c.action, names); got != c.want {
			t.Errorf("%s %s %q: got %v", c.identity, c.action, names, got)
		}
	}
}

// ownNames is a policy of one rule in which these identities have names of their own.
func ownNames(identities ...string) string {
	return "rules: [{identities: ['" + strings.Join(identities, "', '") +
		"'], methods: ['c.Groups/*'], prefixes: [shop, 'own/{identity}'], members: ['{identity}', 'x-{identity}']}]"
}

func TestACallerHasItsOwnNamesAndNoOthers(t *testing.T) {
	for _, c := range []struct {
		rule, identity, group, member string
		want                          bool
	}{
		{"uid:1 uid:2", "uid:1", "shop", "1", true},
		{"uid:1 uid:2", "uid:1", "shop", "x-1", true},
		{"uid:1 uid:2", "uid:1", "shop", "2", false},
		{"uid:1 uid:2", "uid:1", "shop", "{identity}", false},
		{"uid:1 uid:2", "uid:1", "shop", "uid:1", false},
		{"uid:1 uid:2", "uid:3", "shop", "3", false},
		{"uid:1 uid:2", "uid:1", "own/1", "1", true},
		{"uid:1 uid:2", "uid:1", "own/1/more", "1", true},
		{"uid:1 uid:2", "uid:1", "own/2", "1", false},
		{"uid:1 uid:2", "uid:1", "own/11", "1", false},
		{"uid:1 uid:2", "uid:1", "own", "1", false},
		{"spiffe://p/sa/*", "spiffe://p/sa/cart", "shop", "cart", true},
		{"spiffe://p/sa/*", "spiffe://p/sa/cart", "shop", "x-cart", true},
		{"spiffe://p/sa/*", "spiffe://p/sa/cart", "shop", "sa", false},
		{"spiffe://p/sa/*", "spiffe://p/sa/b/cart", "shop", "cart", false},
		{"spiffe://p/sa/*", "spiffe://p/sa/b/cart", "shop", "b", false},
		{"spiffe://p/sa/*", "spiffe://p/sa/b/cart", "own/b/cart", "b", false},
		{"cert:a/b cert:a", "cert:a/b", "own/a/b", "a", false}, // it would lie in the names of cert:a
		{"cert:a/b cert:a/*", "cert:a/*", "shop", "*", false},
		{"cert:a/b cert:a", "cert:a", "own/a", "a", true},
	} {
		policy := parse(t, ownNames(strings.Fields(c.rule)...))
		if got := policy.Allows(c.identity, "c.Groups/Join", []string{c.group}, c.member); got != c.want {
			t.Errorf("%s: %s as %s in %s: got %v", c.rule, c.identity, c.member, c.group, got)
		}
	}
	if parse(t, ownNames("cert:a", "cert:a/b")).Allows("cert:a/b", "c.Groups/Watch", []string{"own/a/b"}) {
		t.Error("a caller's own name lies in another's")
	}
	policy := parse(t, ownNames("uid:1"))
	if !policy.Allows("uid:1", "c.Groups/Watch", []string{"shop"}) {
		t.Error("a rule with members does not allow what is about none")
	}
}

func TestAPolicyWithoutRulesDeniesEverything(t *testing.T) {
	if parse(t, "rules: []").Allows("uid:0", "a.Locks/Acquire", nil) {
		t.Error("it allows something")
	}
}

func TestABadPolicyIsRefusedWithFileLineFieldValueAndRule(t *testing.T) {
	good := "rules:\n- identities: [\"uid:1\"]\n  methods: [\"a.Locks/*\"]\n"
	for _, c := range []struct{ text, want string }{
		{"", "p.yaml: is empty: rules are required"},
		{"# nothing\n", "p.yaml: is empty: rules are required"},
		{"rules", `p.yaml:1: the policy is "rules": a mapping with rules`},
		{"{}", `p.yaml:1: rules is missing: required`},
		{"rules:", `p.yaml:1: rules is "": a list`},
		{"rules: [1]", `p.yaml:1: rules[0] is "1": a mapping with identities, methods, prefixes, members`},
		{"rules: {a: b}", `p.yaml:1: rules is a mapping: a list`},
		{"rules: [", "p.yaml: yaml: line 1"},
		{good + "rules: []", `p.yaml:4: a field of the policy is "rules": each field once`},
		{good + "---\nrules: []", "p.yaml: contains more than one document"},
		{good + "  action: deny", `p.yaml:4: a field of rules[0] is "action": one of identities, methods, prefixes, members`},
		{good + "  prefixes:", `p.yaml:4: rules[0].prefixes is "": a list`},
		{good + "  prefixes: []", `p.yaml:4: rules[0].prefixes is empty: at least one`},
		{good + "  prefixes: [a, b/]", `p.yaml:4: rules[0].prefixes[1] is "b/": a good name`},
		{good + "  prefixes: ['a*']", `p.yaml:4: rules[0].prefixes[0] is "a*": a good name`},
		{good + "  prefixes: [1]", `p.yaml:4: rules[0].prefixes[0] is "1": a text`},
		{good + "  prefixes: [[a]]", `p.yaml:4: rules[0].prefixes[0] is a list: a text`},
		{good + "limits: 1", `p.yaml:4: limits is "1": a list`},
		{good + "limits:", `p.yaml:4: limits is "": a list`},
		{good + "limits: [1]", `p.yaml:4: limits[0] is "1": a mapping with identities, connections, streams`},
		{good + "limits: [{leases: 1}]", `p.yaml:4: limits[0].identities is missing: required`},
		{good + "limits: [{identities: [], leases: 1}]", `p.yaml:4: limits[0].identities is empty: at least one`},
		{good + "limits: [{identities: [root], leases: 1}]", `p.yaml:4: limits[0].identities[0] is "root": an identity is uid:N`},
		{good + "limits: [{identities: ['*']}]", `p.yaml:4: limits[0] is without a limit: at least one of connections, streams`},
		{good + "limits: [{identities: ['*'], lease: 1}]", `p.yaml:4: a field of limits[0] is "lease": one of identities, connections`},
		{good + "limits:\n- identities: ['*']\n  leases: 0", `p.yaml:6: limits[0].leases is "0": a whole number from 1 to 1099511627776`},
		{good + "limits: [{identities: ['*'], leases: -1}]", `limits[0].leases is "-1": a whole number`},
		{good + "limits: [{identities: ['*'], leases: 1.5}]", `limits[0].leases is "1.5": a whole number`},
		{good + "limits: [{identities: ['*'], leases: '5'}]", `limits[0].leases is "5": a whole number`},
		{good + "limits: [{identities: ['*'], leases: 0x10}]", `limits[0].leases is "0x10": a whole number`},
		{good + "limits: [{identities: ['*'], leases: 1099511627777}]", `limits[0].leases is "1099511627777": a whole number`},
		{good + "limits: [{identities: ['*'], leases: many}]", `limits[0].leases is "many": a whole number`},
		{good + "limits: [{identities: ['*'], leases: [1]}]", `limits[0].leases is a list: a whole number`},
		{good + "limits: [{identities: ['*'], leases: 1, leases: 2}]", `a field of limits[0] is "leases": each field once`},
		{good + "- methods: [\"a.Locks/*\"]", `p.yaml:4: rules[1].identities is missing: required`},
		{good + "- identities: ['*']", `p.yaml:4: rules[1].methods is missing: required`},
		{
			"rules: [{identities: [root], methods: ['a.Locks/*']}]",
			`p.yaml:1: rules[0].identities[0] is "root": an identity is uid:N`,
		},
		{"rules: [{identities: ['uid:x'], methods: ['a.Locks/*']}]", `"uid:x": a number follows uid:`},
		{"rules: [{identities: ['uid:01'], methods: ['a.Locks/*']}]", `"uid:01": a number follows uid:`},
		{"rules: [{identities: ['uid:*'], methods: ['a.Locks/*']}]", `"uid:*": a number follows uid:`},
		{"rules: [{identities: ['spiffe://p/a*'], methods: ['a.Locks/*']}]", `"spiffe://p/a*": a trust domain`},
		{"rules: [{identities: ['spiffe://*'], methods: ['a.Locks/*']}]", `"spiffe://*": an identity is uid:N`},
		{"rules: [{identities: ['dns:Web.test'], methods: ['a.Locks/*']}]", `"dns:Web.test": a host name in lower case`},
		{
			"rules: [{identities: ['*'], methods: [Acquire]}]",
			`rules[0].methods[0] is "Acquire": a method is SERVICE/METHOD, such as a.Locks/Acquire`,
		},
		{"rules: [{identities: ['*'], methods: ['*']}]", `"*": a method is SERVICE/METHOD`},
		{"rules: [{identities: ['*'], methods: ['c.Locks/*']}]", `"c.Locks/*": a service of the sidecar: a.Locks, b.Leases, c.Groups`},
		{
			"rules: [{identities: ['*'], methods: ['a.Locks/acquire']}]",
			`"a.Locks/acquire": a method of that service: *, Acquire, Revoke`,
		},
		{"rules: [{identities: ['*'], methods: ['/a.Locks/Acquire']}]", "a service of the sidecar"},
		{good + "  members: [a]", `p.yaml:4: rules[0].members is of no use: for rules with a method about members`},
		{good + "  members: [a/b]", `p.yaml:4: rules[0].members[0] is "a/b": one segment, without /`},
		{good + "  members: []", `p.yaml:4: rules[0].members is empty: at least one`},
		{good + "  prefixes: ['{name}*']", `rules[0].prefixes[0] is "{name}*": a good name`},
		{ownNames("*"), "rules[0].identities is *: with {identity}, identities that begin alike"},
		{ownNames("uid:1", "socket:1"), "rules[0].identities is uid:1, socket:1: with {identity}, identities that begin alike"},
		{ownNames("tcp:loopback"), "is tcp:loopback: with {identity}"},
		{ownNames("spiffe://p/a"), "or a single SPIFFE path with /* at its end"},
		{ownNames("spiffe://p/a/*", "spiffe://p/b/*"), "or a single SPIFFE path with /* at its end"},
		{
			"rules: &x\n- {identities: &i ['*'], methods: [a.Locks/*]}\n- {identities: *i, methods: [a.Locks/*]}",
			`p.yaml:3: rules[1].identities is an alias: a list`,
		},
	} {
		_, err := Parse("p.yaml", []byte(c.text), actions, nameRule)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v; want %s", c.text, err, c.want)
		}
	}
	_, err := Parse("p.yaml", make([]byte, Longest+1), actions, nameRule)
	if got := fmt.Sprint(err); got != "p.yaml: has 1048577 bytes: at most 1048576" {
		t.Errorf("a long one: %s", got)
	}
}

func TestTheFirstEntryThatIsAboutTheCallerAndNamesTheLimitDecides(t *testing.T) {
	policy := parse(t, `
rules: []
limits:
  - identities: ["uid:1"]
    leases: 5
    writes_per_second: 10
  - identities: ["uid:1", "spiffe://prod/web/*"]
    leases: 6
    streams: 7
  - identities: ["*"]
    leases: 8
`)
	for _, c := range []struct {
		identity string
		limit    Limit
		want     int
	}{
		{"uid:1", Leases, 5},
		{"uid:1", Streams, 7},
		{"uid:1", WritesPerSecond, 10},
		{"uid:1", Connections, 0},
		{"spiffe://prod/web/a", Leases, 6},
		{"spiffe://prod/web", Leases, 8},
		{"uid:2", Leases, 8},
		{"uid:2", WritesPerSecond, 0},
	} {
		if got := policy.Limit(c.identity, c.limit); got != c.want {
			t.Errorf("%v of %s: got %d; want %d", c.limit, c.identity, got, c.want)
		}
	}
}

func TestEveryLimitCanBeSet(t *testing.T) {
	for limit, name := range LimitNames() {
		policy := parse(t, "rules: []\nlimits: [{identities: ['*'], "+name+": 1099511627776}]")
		for other := range limitCount {
			want := 0
			if other == Limit(limit) {
				want = 1 << 40
			}
			if got := policy.Limit("uid:1", other); got != want {
				t.Errorf("with %s, %v: got %d; want %d", name, other, got, want)
			}
		}
	}
}

// Whatever stands in the file, it is refused or it denies who is not in it.
func FuzzParse(f *testing.F) {
	f.Add("rules:\n- identities: [\"uid:1\"]\n  methods: [\"a.Locks/*\"]\n  prefixes: [a]\n")
	f.Add("rules: []")
	f.Add("rules: []\nlimits:\n- identities: ['*']\n  leases: 10\n  bytes_per_second: 1\n")
	f.Add("rules: [{identities: ['spiffe://p/*'], methods: ['a.Locks/Break']}]")
	f.Fuzz(func(t *testing.T, text string) {
		policy, err := Parse("p.yaml", []byte(text), actions, nameRule)
		if err != nil {
			if policy != nil || !strings.HasPrefix(err.Error(), "p.yaml:") {
				t.Errorf("refused with %v", err)
			}
			return
		}
		for _, entry := range policy.limits {
			if len(entry.identities) == 0 || slices.Max(entry.limits[:]) == 0 || slices.Min(entry.limits[:]) < 0 {
				t.Errorf("an entry of %q limits nothing: %v", text, entry)
			}
		}
		for _, rule := range policy.rules {
			if len(rule.identities) == 0 || len(rule.actions) == 0 && !strings.Contains(text, "*") {
				t.Errorf("a rule of %q says nothing: %v", text, rule)
			}
			for _, identity := range rule.identities {
				if matches(identity, "nobody") && identity != everything {
					t.Errorf("%q is about somebody else", identity)
				}
			}
		}
	})
}
