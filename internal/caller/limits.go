package caller

import (
	"cmp"

	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// Limits are how much each identity may have: what the policy says, else what holds by default.
type Limits struct {
	defaults policy.Limits
	policy   func() *policy.Policy // nil without one
}

// NewLimits makes limits of which none depends on the identity. A limit of 0 is none.
func NewLimits(defaults policy.Limits) *Limits { return &Limits{defaults: defaults} }

// Follow has the policy of the moment come first. It is called before anybody asks.
func (l *Limits) Follow(newest func() *policy.Policy) { l.policy = newest }

// Of is how much the identity may have of it now; 0 for any number.
func (l *Limits) Of(identity string, limit policy.Limit) int {
	return cmp.Or(l.Said(identity, limit), l.defaults[limit])
}

// Said is how much the policy says that the identity may have of it; 0 if it says nothing.
func (l *Limits) Said(identity string, limit policy.Limit) int {
	if l.policy == nil {
		return 0
	}
	return l.policy().Limit(identity, limit)
}

// Share is Of for one limit.
func (l *Limits) Share(limit policy.Limit) func(identity string) int {
	return func(identity string) int { return l.Of(identity, limit) }
}
