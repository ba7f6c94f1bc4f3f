package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// What servers tell of themselves in answer to a four-letter word.
var (
	firedLine = line{"mntr", regexp.MustCompile(`(?m)^zk_sum_node_deleted_watch_count\s+(\d+)`), 10}
	zxidLine  = line{"srvr", regexp.MustCompile(`(?m)^Zxid: 0x([0-9a-f]+)$`), 16}
)

// A line is where a figure stands in the answer to a word.
type line struct {
	word       string
	expression *regexp.Regexp // its only group is the figure
	base       int
}

// figures asks all servers for a figure. It is 0 for one that does not tell.
func figures(ctx context.Context, s *stage.Stage, of line) ([]int64, error) {
	var all []int64
	for _, server := range s.Ensemble.Servers() {
		text, err := ask(ctx, server, of.word)
		if err != nil {
			return nil, err
		}
		figure := int64(0)
		if groups := of.expression.FindStringSubmatch(text); groups != nil {
			if figure, err = strconv.ParseInt(groups[1], of.base, 64); err != nil {
				return nil, err
			}
		}
		all = append(all, figure)
	}
	return all, nil
}

// ask asks a server again where it was too busy to answer within the second that it is given.
func ask(ctx context.Context, server *ensemble.Server, word string) (answer string, err error) {
	const attempts = 20
	for range attempts {
		if answer, err = server.Ask(ctx, word); err == nil || !stage.Pause(ctx, glance) {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("server %d does not answer %s: %w", server.ID(), word, err)
	}
	return answer, err
}
