package expect

import (
	"fmt"
	"strings"

	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
)

// Leader is a message of a watch of an election, in words.
func Leader(news *electionv1.WatchResponse) string {
	switch {
	case news.GetVacant() != nil:
		return "vacant"
	case news.GetStale() != nil:
		return "stale"
	}
	leader := news.GetLeader()
	return strings.TrimSpace(fmt.Sprintf("%s in term %d: %s", leader.GetCandidate(), leader.GetTicket().GetFencingToken(), leader.GetValue()))
}
