package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/exit"
)

func TestDoctorExitsWithTheMostSevereThingItFinds(t *testing.T) {
	t.Parallel()
	s, welcome := develop(t)
	defer func() {
		s.signal(os.Interrupt)
		s.ends()
	}()
	ensemble := said(t, welcome, `ensemble:  (\S+), `)
	healthy := []string{"doctor", "--zookeeper", ensemble, "--session-timeout=6s", "--tick-time=1s"}
	const open = "warning: --zookeeper-auth-file: the sidecar has no credentials"
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"without credentials", healthy, exitWarnings, open},
		{"a lock by its name", append(healthy, "orders"), exitWarnings, open},
		{"more leases than connections", append(healthy, "--max-leases=1000000"), exitWarnings, open},
		{"a tick that is too short", append(healthy, "--tick-time=500ms"), exitProblems, "problem: --tick-time: tickTime is 1s on " + ensemble},
		{
			"a timeout that is not to be had", append(healthy, "--session-timeout=1m"), exitWarnings,
			"warning: " + ensemble + ": allows session timeouts from 2s to 20s",
		},
		{
			"a timeout of little use", append(healthy, "--session-timeout=4s"), exitWarnings,
			"warning: --session-timeout: with 4s, a lease is valid for 2.",
		},
		{"a timeout that is not safe", append(healthy, "--proof=static"), exitProblems, "problem: --session-timeout: session timeout too short"},
		{
			"nobody there",
			[]string{"doctor", "--zookeeper=127.0.0.1:1", "--timeout=500ms"},
			exit.Unreachable, "problem: 127.0.0.1:1: does not answer",
		},
		{"no ensemble", []string{"doctor"}, exit.Usage, ""},
		{"a bad name", append(healthy, "a//b"), exit.Usage, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, failure bytes.Buffer
			code := run(context.Background(), c.args, strings.NewReader(""), &out, &failure)
			if code != c.code || !strings.HasPrefix(out.String(), c.says) {
				t.Errorf("exits with %d and says %s%s", code, out.String(), failure.String())
			}
		})
	}
}

func TestDoctorSpeaksToPrograms(t *testing.T) {
	t.Parallel()
	s, welcome := develop(t)
	defer func() {
		s.signal(os.Interrupt)
		s.ends()
	}()
	var out bytes.Buffer
	args := []string{"doctor", "--zookeeper", said(t, welcome, `ensemble:  (\S+), `), "--session-timeout=10s", "--output=json"}
	if code := run(context.Background(), args, strings.NewReader(""), &out, &bytes.Buffer{}); code != exitWarnings {
		t.Errorf("exits with %d", code)
	}
	var findings []map[string]string
	err := json.Unmarshal(out.Bytes(), &findings)
	if err != nil || len(findings) != 2 || findings[0]["severity"] != "warning" || findings[1]["severity"] != "note" {
		t.Errorf("%s: %v", out.String(), err)
	}
}
