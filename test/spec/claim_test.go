//go:build spec

package spec_test

// The bounds of Claim.tla. Of two callers one has claims, and the other one is an ordinary caller that is granted the lock by its place.
var (
	claimed = lock.with(bounds{
		"Callers": `{"a", "p"}`, "Lasting": `{"p"}`, "About": "{}", "MaxLog": "4", "MaxFailures": "0",
		"Span": "1", "Tolerance": "0", "Errors": "{0}", "Wrong": `{{"ensemble"}}`,
		"MaxTime": "3", "MaxVersion": "2", "MaxSent": "2",
	})
	// Either clock may be wrong, and one write is under way at a time.
	singly = claimed.with(bounds{"MaxSent": "1", "Wrong": `{{"ensemble"}, {"asked", "sweeper"}}`})
	// Two readings of clocks that are right are as far apart as the tolerance.
	coarse = singly.with(bounds{"Span": "2", "Tolerance": "2", "Errors": "{0, 2}", "MaxVersion": "1"})
	// The lock is claimed, given up and claimed again.
	anew = singly.with(bounds{"MaxLog": "6", "MaxTime": "1", "MaxVersion": "1", "Wrong": "{{}}"})
)

var claims = append([]string{"NoClaimEndsEarly", "CountedClaimsStand"}, excluded...)

func claimRuns() []run {
	return []run{
		{name: "a claim stands without a session", module: "Claim", bounds: claimed, holds: claims, eventual: []string{"TokensGrow"}},
		{name: "a clock shows any time", module: "Claim", bounds: singly, holds: claims, eventual: []string{"TokensGrow"}},
		{
			name: "any clock shows any time, and claims are extended meanwhile", module: "Claim", slow: true, holds: claims,
			bounds: claimed.with(bounds{"Wrong": `{{"ensemble"}, {"asked", "sweeper"}}`, "MaxTime": "4"}),
		},
		{name: "clocks are right within the tolerance", module: "Claim", bounds: coarse, holds: claims},
		{
			name: "two callers have claims", module: "Claim", holds: claims, eventual: []string{"TokensGrow"},
			bounds: singly.with(bounds{
				"Callers": `{"p", "q"}`, "Lasting": `{"p", "q"}`, "MaxVersion": "1", "MaxTime": "2", "Wrong": `{{"ensemble"}}`,
			}),
		},
		{
			name: "a caller is told of its hold beside a claim", module: "Claim", holds: claims,
			bounds: anew.with(bounds{"MaxLog": "4", "About": `{"hold"}`, "Span": "0", "MaxTime": "1"}),
		},

		{
			name: "a claim ends that was extended meanwhile", module: "Claim", bounds: claimed,
			mistake: "ends whichever version", refuted: "NoClaimEndsEarly",
		},
		{
			name: "a claim ends by the clock of its sidecar", module: "Claim", bounds: singly,
			mistake: "ends a claim by its own clock", refuted: "OneStreamHolds",
		},
		{
			name: "a claim ends by the ensemble's clock", module: "Claim", bounds: singly,
			mistake: "ends a claim by the ensemble's clock", refuted: "OneStreamHolds",
		},
		{name: "a claim gets another place", module: "Claim", bounds: anew, mistake: "makes its place anew", refuted: "OneStreamHolds"},
		{
			name: "a claim is checked at a reader that lags", module: "Claim", bounds: singly,
			mistake: "answers from a reader that lags", refuted: "OneStreamHolds",
		},
		// What is assumed of clocks is needed.
		{
			name: "the clocks of the ensemble and of the asked sidecar are wrong", module: "Claim",
			bounds: singly.with(bounds{"Wrong": `{{"ensemble", "asked"}}`}), refuted: "CountedClaimsStand",
		},
		{
			name: "the clocks of the ensemble and of the ending sidecar are wrong", module: "Claim",
			bounds: singly.with(bounds{"Wrong": `{{"ensemble", "sweeper"}}`}), refuted: "CountedClaimsStand",
		},
		{
			name: "two readings of a clock are further apart than the tolerance", module: "Claim",
			bounds: coarse.with(bounds{"Errors": "{0, 4}", "Wrong": "{{}}"}), refuted: "CountedClaimsStand",
		},

		{name: "a caller counts on a claim", module: "Claim", bounds: singly, refuted: "NobodyCountsOnAClaim"},
		{name: "a claim is extended", module: "Claim", bounds: singly, refuted: "NothingIsPutOff"},
		{name: "a claim runs out", module: "Claim", bounds: singly, refuted: "NoClaimRunsOut"},
		{name: "a write of a claim comes late", module: "Claim", bounds: claimed, refuted: "NoWriteOfAClaimIsLate"},
		{name: "a caller follows a claim", module: "Claim", bounds: singly, refuted: "NobodyFollowsAClaim"},
		{name: "a claim follows a caller", module: "Claim", bounds: singly, refuted: "NoClaimFollows"},
	}
}
