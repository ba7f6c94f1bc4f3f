package house

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const reasonsFile = "proto/sidekeeper/errors/v1/errors.proto"

var (
	reasonLine = regexp.MustCompile(`^  REASON_([A-Z_]+) = \d+;$`)
	answer     = regexp.MustCompile(`(?m)^\s*//\s+([A-Z_]+) \(([A-Z_,\s/]+)\):`)
	statusWord = regexp.MustCompile(`\b[A-Z]{2,}(?:_[A-Z]+)*\b`)
)

// The reasons that any rpc can end with, so that no rpc's comment has to say so.
var everywhere = []string{"INTERNAL", "POLICY_DENIED", "QUOTA_EXCEEDED", "DIRECTORY_TOO_LARGE", "ENSEMBLE_DEMANDS_AUTH"}

// The reasons that only clients make, which no rpc ends with.
var ofClients = []string{"RELEASE_UNCONFIRMED"}

// Who reads an rpc's comment learns which errors to expect, and who reads the list of reasons learns under which status
// each one comes: the two must say the same.
func TestEveryReasonIsNamedByAnRPCWithAStatusItsCommentNames(t *testing.T) {
	t.Parallel()

	statuses := statusesOfReasons(t)
	named := map[string]bool{}

	for _, file := range files(t, ".proto") {
		for _, match := range answer.FindAllStringSubmatch(file.text, -1) {
			for reason := range strings.SplitSeq(match[2], ",") {
				reason = strings.Trim(reason, " \n/")
				named[reason] = true

				if !slices.Contains(statuses[reason], match[1]) {
					t.Errorf("%s: %s comes with %q in the list of reasons, here with %s",
						file.path, reason, statuses[reason], match[1])
				}
			}
		}
	}

	for reason := range statuses {
		if !named[reason] && !slices.Contains(slices.Concat(everywhere, ofClients), reason) {
			t.Errorf("no rpc's comment names the reason %s", reason)
		}
	}
}

// statusesOfReasons maps each reason to the words in capitals of its comment, the statuses among them. Its zero value
// is no error of this API and left out.
func statusesOfReasons(t *testing.T) map[string][]string {
	t.Helper()

	statuses := map[string][]string{}

	var comment []string

	for line := range strings.Lines(read(t, reasonsFile)) {
		line = strings.TrimSuffix(line, "\n")

		if text, isComment := strings.CutPrefix(line, "  //"); isComment {
			comment = append(comment, statusWord.FindAllString(text, -1)...)

			continue
		}

		if reason := reasonLine.FindStringSubmatch(line); len(reason) == 2 && reason[1] != "UNSPECIFIED" {
			statuses[reason[1]] = comment
		}

		comment = nil
	}

	if len(statuses) == 0 {
		t.Fatalf("%s has no reason that this test can read", reasonsFile)
	}

	return statuses
}
