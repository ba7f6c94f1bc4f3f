package judge

import (
	"testing"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

func TestEffectsThatALockShouldHavePreventedAreTold(t *testing.T) {
	holder := func(acts string) string {
		return `
			10 1/1 called L
			20 1/1 granted 5
			90 1/1 ended user` + acts
	}
	judgeAll(t, Effects, []story{
		{
			name: "one write after the other",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				32 1/1 acted fenced 5 1 ok
				40 1/1 acting fenced 5 2
				41 s accepted fenced L 5 2
				42 1/1 acted fenced 5 2 ok`),
		},
		{
			name: "a write whose outcome nobody knows, which was done, and one that was not",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				32 1/1 acted fenced 5 1 unknown
				40 1/1 acting fenced 5 2
				42 1/1 acted fenced 5 2 unknown`),
		},
		{
			name: "a caller that is killed while it writes",
			seen: `
				10 1/1 called L
				20 1/1 granted 5
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				31 c killed client/1`,
		},
		{
			name: "a late write that is refused",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s refused fenced L 5 1
				32 1/1 acted fenced 5 1 refused`),
		},
		{
			name: "a smaller token after a larger one",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				30 1/1 acting fenced 4 2
				33 s accepted fenced L 4 2`), want: "accepted token 4 after 5",
		},
		{
			name: "an update that is lost",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				32 1/1 acting fenced 5 1
				33 s accepted fenced L 5 1`), want: "was lost: token 5 wrote 1 over the 1",
		},
		{
			name: "a success that the store knows nothing of",
			seen: holder(`
				30 1/1 acting fenced 5 1
				32 1/1 acted fenced 5 1 ok`), want: "and told it 1 times",
		},
		{
			name: "a write that was done though it was refused",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				32 1/1 acted fenced 5 1 refused`), want: "told that it was refused",
		},
		{
			name: "a write that nobody asked for",
			seen: holder(`
				31 s accepted fenced L 5 1`), want: "asked to 0 times",
		},
		{
			name: "two locks with a counter each",
			seen: holder(`
				30 1/1 acting fenced 5 1
				31 s accepted fenced L 5 1
				10 1/2 called M
				20 1/2 granted 3
				30 1/2 acting fenced 3 1
				33 s accepted fenced M 3 1
				40 1/2 ended user`),
		},
	})
}

func TestANaiveStoreWithoutDamageMakesARoundOfFreezesInvalid(t *testing.T) {
	damages := func(s *history.Settings) { s.Damages = true }
	seen := `
		10 1/1 called L
		20 1/1 granted 5
		30 1/1 acting naive 5 1
		31 s accepted naive L 5 1
		32 1/1 acted naive 5 1 ok
		40 1/1 ended user`
	if verdict := Judge(story{seen: seen, adjust: damages}.round()); verdict.Invalid == "" || len(verdict.Violations) > 0 {
		t.Errorf("%+v", verdict)
	}
	damaged := seen + `
		34 1/1 acting naive 5 1
		35 s accepted naive L 5 1`
	if verdict := Judge(story{seen: damaged, adjust: damages}.round()); verdict.Invalid != "" || len(verdict.Violations) > 0 {
		t.Errorf("%+v", verdict)
	}
	if verdict := Judge(story{seen: seen}.round()); verdict.Invalid != "" {
		t.Errorf("%+v", verdict)
	}
}
