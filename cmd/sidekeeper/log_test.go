package main

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/sink"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// Lines may wait for one another, but not for long, nor where somebody must see them, nor for ever.
func TestLinesOfTheLogAreWrittenInBlocksInTheirOrder(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		out := &expect.Logbook{}
		to := sink.New(out)
		log := (&settings{}).newLog(to, nil)
		lines := func() (messages string) {
			synctest.Wait()
			for _, found := range regexp.MustCompile(`"msg":"(\w+)"`).FindAllStringSubmatch(out.Text(), -1) {
				messages += " " + found[1]
			}
			return messages
		}
		log.Info("first")
		expect.Same(t, "at first", lines(), "")
		<-time.After(sink.Delay)
		expect.Same(t, "after a while", lines(), " first")
		log.Info("second")
		log.Warn("third")
		expect.Same(t, "with a warning", lines(), " first second third")
		log.With(zap.Int("n", 1)).Info("fourth")
		to.Close()
		expect.Same(t, "at the end", lines(), " first second third fourth")
	})
}
