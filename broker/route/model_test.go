package route

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider"
)

var expressions = make(map[string]*regexp.Regexp)

// modelMatches is an independent, slow implementation of pattern matching.
func modelMatches(patterns []string, text string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, p := range patterns {
		if expressions[p] == nil {
			expressions[p] = regexp.MustCompile(`\A(?s:` + strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*") + `)\z`)
		}
		if expressions[p].MatchString(text) {
			return true
		}
	}
	return false
}

func modelResolve(rules []Rule, m postrider.Message) int {
	for i, r := range rules {
		if modelMatches(r.Match.Types, m.Type) && modelMatches(r.Match.Topics, m.Topic) && modelMatches(r.Match.Tenants, m.TenantID) {
			return i
		}
	}
	return -1
}

func randomText(r *rand.Rand, alphabet string, least int) string {
	b := make([]byte, least+r.IntN(5))
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

func randomList(r *rand.Rand, least int) []string {
	var list []string
	for range r.IntN(3) {
		list = append(list, randomText(r, "ab.*", least))
	}
	return list
}

// TestTableAgainstModel compares random tables with the model, and checks that rules reported as
// unreachable are.
func TestTableAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tables, unreachable := 0, 0
	for range 3_000 {
		rules := make([]Rule, 1+r.IntN(4))
		for i := range rules {
			rules[i] = Rule{Match: Match{randomList(r, 1), randomList(r, 0), randomList(r, 0)}, Destination: "d", Name: "{type}"}
		}
		table, err := NewTable(rules)
		for range 20 {
			m := postrider.Message{Type: randomText(r, "ab.", 1), Topic: randomText(r, "ab.", 0), TenantID: randomText(r, "ab.", 0)}
			want := modelResolve(rules, m)
			if err != nil {
				unreachable++
				if slices.Contains(wrongRules(t, err), want) {
					t.Fatalf("%+v reaches rule %d of %+v, but: %v", m, want, rules, err)
				}
				continue
			}
			tables++
			d, err := table.Resolve(&m)
			if (err != nil) != (want < 0) || err == nil && (d.Rule != want || d.Name != m.Type) {
				t.Fatalf("%+v in %+v: %+v, %v; the model says %d", m, rules, d, err, want)
			}
		}
	}
	if tables == 0 || unreachable == 0 {
		t.Errorf("%d good and %d bad cases", tables, unreachable)
	}
}

// wrongRules returns the indexes of the rules in an error.
func wrongRules(t *testing.T, err error) []int {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T is not a list of errors", err)
	}
	var rules []int
	for _, err := range joined.Unwrap() {
		var e *RuleError
		if !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		rules = append(rules, e.Rule)
	}
	return rules
}

func TestWildcardIsNotSlow(t *testing.T) {
	text := strings.Repeat("a", postrider.MaxText)
	if wildcard(strings.Repeat("a*", 300)+"b", text) {
		t.Error("matches")
	}
}

// TestExcludes compares random filters with all short texts: two filters exclude each other if no
// text matches both.
func TestExcludes(t *testing.T) {
	var texts []string
	for _, a := range []string{"", "a", "b", "."} {
		for _, b := range []string{"", "a", "b", "."} {
			for _, c := range []string{"", "a", "b", "."} {
				for _, d := range []string{"", "a", "b", "."} {
					texts = append(texts, a+b+c+d)
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	var excluding, meeting int
	for range 5_000 {
		a, b := randomText(r, "ab*", 0), randomText(r, "ab*", 0)
		both := slices.ContainsFunc(texts, func(text string) bool { return wildcard(a, text) && wildcard(b, text) })
		left, right := Match{Tenants: []string{a}}, Match{Tenants: []string{b}}
		excludes := left.Excludes(&right)
		if excludes {
			excluding++
		} else {
			meeting++
		}
		// A text that matches both may be longer than those tried.
		if both && excludes || !both && !excludes && len(a)+len(b) <= 4 || excludes != right.Excludes(&left) {
			t.Fatalf("%q and %q: a text matches both: %v; exclude each other: %v", a, b, both, excludes)
		}
	}
	if excluding < 100 || meeting < 100 {
		t.Errorf("%d pairs exclude each other and %d do not: too few", excluding, meeting)
	}
	none, some := Match{}, Match{Types: []string{"a"}}
	if none.Excludes(&some) || some.Excludes(&none) || some.Excludes(&Match{Topics: []string{"b"}}) {
		t.Error("a filter excludes one that it has messages in common with")
	}
}
