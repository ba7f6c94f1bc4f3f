package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const claimExamples = "../../examples/claims/"

// The calls of pipelines hold the lock from the first to the last of them, as they stand in the files.
func TestPipelinesHoldTheirLock(t *testing.T) {
	t.Parallel()
	for file, lock := range map[string]string{"github-actions.yaml": "staging", "Jenkinsfile": "staging", "migration.service": "database"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			s, welcome := develop(t, "--http-listen=127.0.0.1:0")
			text, err := os.ReadFile(claimExamples + file)
			if err != nil {
				t.Fatal(err)
			}
			calls := regexp.MustCompile(`(?m)(?:\./claim\.sh|/usr/local/bin/sidekeeper) [^'\n]+`).FindAllString(string(text), -1)
			if len(calls) < 2 {
				t.Fatalf("%q", calls)
			}
			programs := t.TempDir()
			for i, call := range calls {
				call = strings.NewReplacer("./claim.sh", claimExamples+"claim.sh", "/usr/local/bin/sidekeeper", os.Args[0],
					"%S/migration", programs, "%n", file).Replace(call)
				command := exec.Command("sh", "-c", call)
				command.Env = append(os.Environ(), role+"=sidekeeper", "SIDEKEEPER_ADDRESS="+s.address, "KEY=secret", "RUN=run-7", "BUILD_TAG=b-7",
					"SIDECAR=http://"+said(t, welcome, `HTTP: +(\S+),`))
				if out, err := command.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", call, err, out)
				}
				held, _, _ := output(t, "lock", "ls", "--address", s.address)
				if last := i == len(calls)-1; strings.Contains(held, lock) == last {
					t.Errorf("after %s: %s", call, held)
				}
			}
		})
	}
}

func TestTheScriptOfPipelinesSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, welcome := develop(t, "--http-listen=127.0.0.1:0")
	address := "SIDECAR=http://" + said(t, welcome, `HTTP: +(\S+),`)
	script, err := filepath.Abs(claimExamples + "claim.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []struct {
		run, args, want string
		fails           bool
	}{
		{"one", "claim staging 60 first", `"until":"20`, false},
		{"two", "claim staging 60 second", "LOCK_HELD", true},
		{"two", "extend 60", "CLAIM_NOT_FOUND", true},
		{"one", "claim staging 1 short", "reserve_for", true},
		{"one", "release", "{}", false},
		{"one", "extend 60", "CLAIM_ENDED", true},
		{"one", "help", "claim.sh release", true},
	} {
		command := exec.Command(script, strings.Fields(call.args)...)
		command.Env = append(os.Environ(), "KEY=secret", "WAIT=0", "RUN="+call.run, address)
		out, err := command.CombinedOutput()
		if (err != nil) != call.fails || !strings.Contains(string(out), call.want) {
			t.Errorf("%s: %v\n%s", call.args, err, out)
		}
	}
}
