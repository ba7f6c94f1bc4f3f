package zookeeper

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// givesUpAfter is for how long what needs the ensemble waits for an answer, where sessions have this timeout.
func givesUpAfter(timeout time.Duration) time.Duration { return max(timeout/3, time.Second) }

// tellContact says in the log that the ensemble is away, once it has been for so long that calls are given up, and that it is back.
func (c *Client) tellContact(ctx context.Context) {
	patience := givesUpAfter(c.config.SessionTimeout)
	late := time.NewTimer(patience)
	defer late.Stop()
	since, told := time.Now(), false
	for away := true; ; {
		reachable, changed := c.Reachable()
		switch {
		case reachable:
			late.Stop()
			if told {
				c.config.Log.Info("contact with the ensemble is back", zap.Duration("after", time.Since(since)))
			}
			away, told = false, false
		case !away:
			away, since = true, time.Now()
			late.Reset(patience)
		}
		select {
		case <-changed:
		case <-late.C:
			told = true
			c.config.Log.Warn("no contact with the ensemble", zap.Time("since", since), zap.Strings("servers", c.unreached()),
				zap.Error(c.reader.whyNone()))
		case <-ctx.Done():
			return
		}
	}
}

// unreached are the servers, each with why it was not reached last, if that is known.
func (c *Client) unreached() []string {
	servers := c.servers.members()
	for i, server := range servers {
		if why := c.silentServers.whyRefused(server); why != nil {
			servers[i] = fmt.Sprintf("%s: %v", server, why)
		}
	}
	return servers
}
