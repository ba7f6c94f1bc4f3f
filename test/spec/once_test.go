//go:build spec

package spec_test

var (
	// Callers of one key, whose record other callers remove when its time is over.
	once = bounds{
		"Of": `"once"`, "MaxPlaces": "3", "MaxAttempts": "2", "Repeats": `{"begun", "failed"}`, "MaxAdrift": "1", "MaxTick": "0", "MaxPuts": "0",
	}
	// The same, where no attempt follows one that was lost.
	skip = once.with(bounds{"Repeats": `{"failed"}`})
	// The same, where none follows another.
	never = once.with(bounds{"Repeats": "{}"})
	// Workers of one schedule, whose rule changes once.
	schedule = once.with(bounds{"Of": `"schedule"`, "MaxPlaces": "2", "MaxTick": "2", "MaxPuts": "1"})
)

const (
	again   = "NothingBeginsAgainButAsARetry"
	follows = "NothingFollowsALostAttempt"
	earlier = "NothingEarlierBegins"
	forward = "TheNextTickMovesForward"
	stays   = "SuccessStaysRecorded"
)

// onceRuns are those of work that is done once, and of a schedule's ticks.
func onceRuns() []run {
	begun := []string{"OneCallerCounts", "NoneBeginsAfterSuccess", stays, again}
	ticks := []string{"OneCallerCounts", again, earlier, forward}
	return []run{
		{name: "callers begin the work of a key", module: "Once", bounds: once, holds: begun},
		{name: "a lost attempt is not repeated", module: "Once", bounds: skip, holds: append([]string{follows}, begun...)},
		{name: "workers begin the ticks of a schedule", module: "Once", bounds: schedule, holds: ticks},
		{
			name: "more workers begin the ticks of a schedule", module: "Once", slow: true,
			bounds: schedule.with(bounds{"MaxPlaces": "3"}), holds: ticks,
		},

		{
			name: "a session of an attempt ends too early", module: "Once", bounds: once,
			mistake: "a session ends before what was told", refuted: "OneCallerCounts",
		},
		{name: "an attempt is told before it is recorded", module: "Once", bounds: once, mistake: "tells before it is recorded", refuted: again},
		{
			name: "an attempt is told before it is recorded, and not repeated", module: "Once", bounds: skip,
			mistake: "tells before it is recorded", refuted: follows,
		},
		{name: "attempts follow without end", module: "Once", bounds: once, mistake: "repeats without end", refuted: again},
		{
			name: "an attempt is written without its place", module: "Once", bounds: once,
			mistake: "writes without a check of its place", refuted: stays,
		},
		{
			name: "a record is removed without its place", module: "Once", bounds: never,
			mistake: "cleans without its place", refuted: "NoneBeginsAfterSuccess",
		},
		{name: "a record is read from a late reader", module: "Once", bounds: never, mistake: "does not catch up", refuted: stays},
		{
			name: "a tick is written without its version", module: "Once", bounds: schedule,
			mistake: "writes next without its version", refuted: earlier,
		},
		{
			name: "the next tick is written without its version", module: "Once", bounds: schedule,
			mistake: "writes next without its version", refuted: forward,
		},

		{name: "an attempt is repeated", module: "Once", bounds: once, refuted: "NothingIsRepeated"},
		{name: "an attempt comes late", module: "Once", bounds: once, refuted: "NothingComesLate"},
		{name: "a record is made anew", module: "Once", bounds: once, refuted: "NothingIsMadeAnew"},
		{name: "an outcome is recorded under another hold", module: "Once", bounds: once, refuted: "NothingIsFinishedLater"},
		{name: "a frozen caller works beside the next one", module: "Once", bounds: once, refuted: "NobodyIsFrozen"},
		{name: "a tick is missed", module: "Once", bounds: schedule, refuted: "NoTickIsMissed"},
	}
}
