package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/chaos/crosscheck"
	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
)

// A campaign is the rounds of one run.
type campaign struct {
	settings *settings
	logged   io.Writer
	report   *report

	stage   *stage.Stage // nil if there is none
	variety string       // of its ensemble
	played  int          // rounds on it
}

// attempts is how often a round is played that turns out invalid.
const attempts = 2

// play plays all rounds.
func (c *campaign) play(ctx context.Context) error {
	defer c.clear()
	blocks, counts, err := chosen(c.settings.profile, c.settings.rounds)
	if err != nil {
		return err
	}
	seed := c.settings.seed
	for i, count := range counts {
		for range count {
			if err := c.playSeed(ctx, seed, blocks[i]); err != nil {
				return err
			}
			seed++
		}
	}
	return nil
}

// playSeed plays the round of a seed, and once more if it was invalid.
func (c *campaign) playSeed(ctx context.Context, seed uint64, p profile) error {
	drawn, err := c.settings.draw(seed, p)
	if err != nil {
		return err
	}
	for attempt := range attempts {
		result, err := c.playRound(ctx, drawn, attempt)
		if err != nil {
			return fmt.Errorf("%s: %w", drawn, err)
		}
		c.report.Rounds = append(c.report.Rounds, result)
		fmt.Fprintln(c.logged, result)
		if err := c.report.write(c.settings.out); err != nil {
			return err
		}
		if result.Invalid == "" || len(result.Violations) > 0 {
			return nil
		}
	}
	return nil
}

// playRound plays one round. An ensemble that did not survive the round is replaced before the next.
func (c *campaign) playRound(ctx context.Context, drawn plan, attempt int) (*result, error) {
	if err := c.prepare(ctx, drawn); err != nil {
		return nil, err
	}
	folder := filepath.Join(c.settings.out, "rounds", fmt.Sprintf("%s-%d-%d", drawn.profile.name, drawn.seed, attempt+1))
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return nil, err
	}
	r := &round{
		plan: drawn, stage: c.stage, folder: folder, replay: c.settings.replay(drawn),
		careful: c.settings.client == caller.Sidekeeper, keep: c.settings.keep,
	}
	outcome, err := r.play(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil { // of this round: what the machine could not do now it may do later
		outcome, r.broken = r.failed(err), true
	}
	c.played++
	if r.broken {
		c.clear()
	}
	if outcome.clean() && !c.settings.keep {
		return outcome, os.RemoveAll(folder)
	}
	return outcome, crosscheck.Export(ctx, folder)
}

// prepare builds a stage for the round, unless the one that is there will do.
func (c *campaign) prepare(ctx context.Context, drawn plan) error {
	options, name := c.settings.stage(drawn)
	variety := drawn.profile.name + name
	if c.stage != nil && c.variety == variety && c.played < drawn.profile.lifetime {
		return nil
	}
	c.clear()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	options.Caller, options.Locks = []string{self, caller.Argument}, c.settings.client
	c.stage, err = stage.Build(ctx, options)
	c.variety, c.played = variety, 0
	return err
}

func (c *campaign) clear() {
	if c.stage != nil {
		c.stage.Close()
		c.stage = nil
	}
}
