package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

// longestSubject is what a terminal and the lists of most programs show.
const longestSubject = 72

// scoped is `zookeeper: send a heartbeat`; a scope is up to three words, or several with commas.
var scoped = regexp.MustCompile(`^[a-z][\w./-]*(,? [\w./-]+){0,2}: [a-z]`)

// checkSubjects looks at each commit after base, except merges. In a clone that lacks base it looks at every commit that is there.
func checkSubjects(ctx context.Context, root, base string) error {
	revisions := base + "..HEAD"
	if _, err := git(ctx, root, "merge-base", "--is-ancestor", base, "HEAD"); err != nil {
		fmt.Fprintf(os.Stderr, "this clone lacks the history from %s to HEAD: every commit of it is checked\n", base)
		revisions = "HEAD"
	}
	log, err := git(ctx, root, "log", "--no-merges", "--format=%h %s", revisions)
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(log) {
		hash, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if length := utf8.RuneCountInString(subject); length > longestSubject {
			errs = append(errs, fmt.Errorf("commit %s: its subject has %d characters, more than %d: %s", hash, length, longestSubject, subject))
		}
		if !scoped.MatchString(subject) {
			errs = append(errs, fmt.Errorf("commit %s: its subject is not `scope: imperative`: %s", hash, subject))
		}
	}
	return errors.Join(errs...)
}
