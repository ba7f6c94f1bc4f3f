package crosscheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/support/full"
)

func TestTheProgramsPassTheirOwnTests(t *testing.T) {
	full.Needs(t, "Python")
	said, err := exec.CommandContext(t.Context(), "python3", "-B", "-m", "unittest", "judge_test", "export_test").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestTheSecondJudgeIsShort(t *testing.T) {
	const longest = 400
	if lines := strings.Count(judge, "\n"); lines > longest {
		t.Errorf("it has %d lines, and at most %d can be read by whoever is to trust it", lines, longest)
	}
}

func TestWhatCannotBeReadIsAnErrorThatSaysSo(t *testing.T) {
	full.Needs(t, "Python")
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "00001.history"), []byte("no JSON\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if verdict, err := Judge(t.Context(), 0, folder, []string{folder}); err == nil || !strings.Contains(err.Error(), "JSONDecodeError") {
		t.Errorf("%+v, %v", verdict, err)
	}
	if err := Export(t.Context(), folder); err == nil || !strings.Contains(err.Error(), "JSONDecodeError") {
		t.Errorf("%v", err)
	}
}

func TestAVerdictIsReadWithOrWithoutViolations(t *testing.T) {
	full.Needs(t, "Python")
	for plant, want := range map[string]int{"none": 0, "number_twice": 1} {
		folder := t.TempDir()
		said, err := exec.CommandContext(t.Context(), "python3", "-B", "judge_test.py", folder, plant).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		logs := []string{filepath.Join(folder, "0"), filepath.Join(folder, "1"), filepath.Join(folder, "2")}
		verdict, err := Judge(t.Context(), 0, folder, logs)
		if err != nil || len(verdict.Violations) != want || verdict.Counts.Grants != 4 || verdict.Unjudged != "" {
			t.Errorf("%s: %+v, %v", plant, verdict, err)
		}
		if verdict, err = Judge(t.Context(), 3, folder, logs); err != nil || verdict.Unjudged != "" || len(verdict.Violations) != want+2 {
			t.Errorf("without the places of the holders: %+v, %v", verdict, err)
		}
	}
}
