package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/chaos/nemesis"
)

func told(t *testing.T, arguments ...string) *settings {
	t.Helper()
	s, err := parse(arguments, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

func draw(t *testing.T, s *settings, seed uint64, profile string) plan {
	t.Helper()
	drawn, err := s.draw(seed, profiles[profile])
	if err != nil {
		t.Fatal(err)
	}
	return drawn
}

func TestASeedAlwaysMakesTheSamePlan(t *testing.T) {
	for seed := range uint64(50) {
		one, two := draw(t, told(t), seed, fastTicks), draw(t, told(t), seed, fastTicks)
		if one.String() != two.String() {
			t.Errorf("%s, and then %s", one, two)
		}
	}
}

func TestAsManyRoundsAsThereAreNemesesHaveEachOfThem(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(len(nemesis.All)) {
		for _, name := range draw(t, told(t), 1000+seed, realTicks).names() {
			seen[name] = true
		}
	}
	if len(seen) != len(nemesis.All) {
		t.Errorf("%d of %d nemeses strike", len(seen), len(nemesis.All))
	}
}

func TestNemesesOfOneRealmDoNotStrikeTogether(t *testing.T) {
	together := 0
	for seed := range uint64(500) {
		drawn := draw(t, told(t), seed, fastTicks)
		realms := map[nemesis.Realm]bool{}
		for _, each := range drawn.nemeses {
			realms[each.Realm] = true
		}
		if len(realms) != len(drawn.nemeses) {
			t.Errorf("%s", drawn)
		}
		if len(drawn.nemeses) > 1 {
			together++
		}
	}
	if together < 100 || together > 200 {
		t.Errorf("%d of 500 rounds have more than one nemesis", together)
	}
}

func TestOnlyWhatMatchesIsDrawn(t *testing.T) {
	s := told(t, "-nemesis", "N1|N12", "-workload", "W[136]")
	for seed := range uint64(20) {
		drawn := draw(t, s, seed, fastTicks)
		for _, name := range drawn.names() {
			if name != "N1" && name != "N12" {
				t.Errorf("%s", drawn)
			}
		}
		if !slices.Equal(drawn.workloads, []string{"W1", "W3", "W6"}) {
			t.Errorf("%s", drawn)
		}
	}
	if _, err := told(t, "-nemesis", "N99").draw(1, profiles[fastTicks]); err == nil {
		t.Error("a round without a nemesis")
	}
}

func TestClientsWithoutASidecarHaveLocksOnly(t *testing.T) {
	s := told(t, "-client", "zklock")
	for seed := range uint64(20) {
		if drawn := draw(t, s, seed, fastTicks); !slices.Equal(drawn.workloads, []string{"W1", "W2", "W3"}) {
			t.Errorf("%s", drawn)
		}
	}
}

func TestRoundsThatMustCostNoLeaseHaveTheDefaultTimeout(t *testing.T) {
	for seed := range uint64(20) {
		drawn := draw(t, told(t, "-nemesis", "N3|N6|N12|N17"), seed, fastTicks)
		if !drawn.steady() || drawn.timeout != profiles[fastTicks].steady {
			t.Errorf("%s", drawn)
		}
	}
}

func TestACommandThatMakesNoSenseIsRefused(t *testing.T) {
	for _, arguments := range [][]string{{"-client", "etcd"}, {"-nemesis", "("}, {"more"}, {"-profile", "slow"}, {"-curator", "bin"}} {
		code := run(t.Context(), append(arguments, "-out", t.TempDir()), io.Discard, io.Discard)
		if code != exitUnable {
			t.Errorf("%s: exit code %d", fmt.Sprint(arguments), code)
		}
	}
}

func TestOneClientOfEachHostUsesCuratorBesideClaims(t *testing.T) {
	jars := t.TempDir()
	s := told(t, "-alone", "claims", "-curator", jars)
	if _, err := s.draw(1, profiles[fastTicks]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without jars: %v", err)
	}
	if err := os.WriteFile(filepath.Join(jars, "curator-recipes-5.9.0.jar"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	drawn := draw(t, s, 1, fastTicks)
	if len(drawn.callers) != 4 || drawn.callers[2][1] != caller.Argument || drawn.callers[3][0] != "java" {
		t.Errorf("%q", drawn.callers)
	}
	if replay := s.replay(drawn); !strings.Contains(replay, "-alone claims -curator '"+jars+"'") {
		t.Error(replay)
	}
}

func TestARoundOfTicksHasOneNemesisOfEachRealm(t *testing.T) {
	for seed := range uint64(50) {
		drawn := draw(t, told(t, "-ticks", "101"), seed, fastTicks)
		realms := map[nemesis.Realm]bool{}
		for _, each := range drawn.nemeses {
			realms[each.Realm] = true
		}
		if len(drawn.nemeses) != 3 || len(realms) != 3 || drawn.profile.faults != 3*time.Minute {
			t.Errorf("%s for %v", drawn, drawn.profile.faults)
		}
	}
}
