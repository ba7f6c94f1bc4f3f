package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/chaos/nemesis"
)

// commands are client processes that use the clients in other languages, as `make restart-callers` builds them.
var commands = map[string][]string{
	"python":     {".cache/python/bin/python", "test/chaos/callers/caller.py"},
	"typescript": {"node", "test/chaos/callers/caller.mjs"},
	"java":       {"java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", "bin/callers:bin/callers/*", "Caller"},
}

const ownLanguage = "go"

func languages() []string {
	return append([]string{ownLanguage}, slices.Sorted(maps.Keys(commands))...)
}

// drawRestarts is the plan of a round of restarts and nothing else.
func (s *settings) drawRestarts(seed uint64, p profile) (plan, error) {
	drawn := plan{
		seed: seed, profile: p, workloads: []string{caller.Standing}, timeout: p.steady, resuming: true,
		nemeses: []nemesis.Nemesis{nemesis.Restarting(s.restarts)},
	}
	for language := range strings.SplitSeq(s.languages, ",") {
		command, known := commands[language]
		if language == ownLanguage {
			self, err := os.Executable()
			if err != nil {
				return plan{}, err
			}
			command, known = []string{self, caller.Argument}, true
		}
		if !known {
			return plan{}, fmt.Errorf("language %q: there are %s", language, strings.Join(languages(), ", "))
		}
		if strings.Contains(command[0], "/") && !filepath.IsAbs(command[0]) {
			if _, err := os.Stat(command[0]); err != nil {
				return plan{}, fmt.Errorf("callers in %s are not built: %w", language, err)
			}
		}
		drawn.callers = append(drawn.callers, command)
	}
	return drawn, nil
}
