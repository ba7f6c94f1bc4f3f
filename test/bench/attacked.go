package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// attacked is the experiment in which one of two sidecars that serve the same load is attacked.
type attacked struct {
	rounds int
	lasts  time.Duration
}

// A siege is what was measured during one attack.
type siege struct {
	peak   int64              // bytes of memory
	ratios map[string]float64 // by what neighbors do, and the percentile
	wrong  []string
	got    string
}

func (a attacked) run(ctx context.Context, on *stage) (*table, error) {
	papers := filepath.Join(on.directory, "papers")
	if err := errors.Join(os.MkdirAll(papers, 0o700), makePapers(papers, "sidecar", "others", "attacker")); err != nil {
		return nil, err
	}
	t := &table{header: []string{"", "peak MiB"}}
	for _, what := range []string{lockPair, check, newcomer, probe} {
		t.header = append(t.header, what+" p50", "p99")
	}
	t.header = append(t.header, "others failed", "elsewhere")
	for _, attack := range allAttacks() {
		if !on.settings.attacks.MatchString(attack.name) {
			continue
		}
		var sieges []siege
		noted := len(t.notes)
		for range a.rounds {
			done, err := a.besiege(ctx, on, papers, attack)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", attack.name, err)
			}
			sieges = append(sieges, done)
		}
		t.siege(attack, sieges)
		fmt.Fprintln(os.Stderr, " ", attack.name, t.rows[len(t.rows)-1][1:], t.notes[noted:])
	}
	t.notes = append(t.notes, "Each p50 and p99 is that of others at the attacked sidecar ÷ that of the same load at the other one.")
	return t, nil
}

// siege adds a row, and notes what went wrong.
func (t *table) siege(of attack, sieges []siege) {
	var peak int64
	ended, elsewhere := 0, 0
	for _, s := range sieges {
		peak = max(peak, s.peak)
		for _, line := range s.wrong {
			if strings.HasPrefix(line, "attacked") {
				ended++
			} else {
				elsewhere++
			}
			t.notes = append(t.notes, of.name+": "+line)
		}
		if s.got != "" {
			t.notes = append(t.notes, of.name+": "+s.got)
		}
	}
	cells := []string{of.does, fmt.Sprint(peak >> 20)}
	for _, what := range []string{lockPair, check, newcomer, probe} {
		for _, percent := range []int{50, 99} {
			var all []float64
			for _, s := range sieges {
				all = append(all, s.ratios[fmt.Sprint(what, percent)])
			}
			cells = append(cells, fmt.Sprintf("%.2f", middle(all)))
		}
	}
	t.add(append(cells, fmt.Sprint(ended), fmt.Sprint(elsewhere))...)
}

// besiege starts two sidecars and the same load at both, and attacks one of them.
//
//nolint:funlen // it is one course of events
func (a attacked) besiege(ctx context.Context, on *stage, papers string, by attack) (s siege, err error) {
	here, at, err := on.startSecure(ctx, papers)
	if err != nil {
		return s, err
	}
	defer here.stop()
	there, elsewhere, err := on.startSecure(ctx, papers)
	if err != nil {
		return s, err
	}
	defer there.stop()
	if err := on.recover(ctx, there); err != nil {
		return s, err
	}
	ours, err := settle(ctx, "attacked", at)
	if err != nil {
		return s, err
	}
	defer ours.leave()
	theirs, err := settle(ctx, "elsewhere", elsewhere)
	if err != nil {
		return s, err
	}
	defer theirs.leave()
	attacker, err := on.attack(ctx, by.name, at)
	if err != nil {
		return s, err
	}
	during, cancel := context.WithTimeout(ctx, a.lasts)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { ours.live(during) })
	both.Go(func() { theirs.live(during) })
	profiled := on.profile(ctx, here, "attack-"+by.name, func() error { return pause(ctx, time.Second) })
	both.Wait()
	s.peak, err = here.peak()
	got, failed := attacker.stop()
	s.got, s.ratios = got, ratiosOf(ours, theirs)
	s.wrong = append(ours.complaints(), theirs.complaints()...)
	return s, errors.Join(err, failed, profiled, ctx.Err())
}

// attack starts an attack, with what it needs.
func (s *stage) attack(ctx context.Context, name string, on victim) (*attacker, error) {
	if name == "directory" || name == "together" {
		if err := makeLongDirectories(ctx, s.addresses()); err != nil {
			return nil, err
		}
	}
	return startAttack(name, on)
}

// recover waits until the ensemble, which an attack before may have left with much to do, serves a sidecar again.
func (s *stage) recover(ctx context.Context, through *sidecar) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	connection, err := through.dial()
	if err != nil {
		return err
	}
	defer connection.Close()
	for {
		_, end, err := beginLease(ctx, connection)
		if err == nil {
			end()
			return nil
		}
		if late := pause(ctx, time.Second); late != nil {
			return fmt.Errorf("the ensemble does not recover: %w", err)
		}
	}
}

func ratiosOf(ours, theirs *neighbors) map[string]float64 {
	ratios := map[string]float64{}
	for what := range theirs.took {
		for _, percent := range []int{50, 99} {
			ratios[fmt.Sprint(what, percent)] = float64(percentile(ours.took[what], percent)) / float64(percentile(theirs.took[what], percent))
		}
	}
	return ratios
}

var listens = regexp.MustCompile(`"for":"listen","address":"(?:tcp://)?([^"]+)"`)

// startSecure starts a sidecar that serves TLS too, with as much of everything as it has by default.
func (s *stage) startSecure(ctx context.Context, papers string) (*sidecar, victim, error) {
	s.counter++
	directory := filepath.Join(s.directory, fmt.Sprint(s.counter))
	if err := os.Mkdir(directory, 0o700); err != nil {
		return nil, victim{}, err
	}
	metrics, err := freeAddress(ctx)
	if err != nil {
		return nil, victim{}, err
	}
	started, err := startSidecar(ctx, s.settings.sidecar, directory, append([]string{
		"--zookeeper", strings.Join(s.addresses(), ","), "--max-connections", "1000", "--listen", "127.0.0.1:0", "--metrics-listen", metrics,
		"--tls-cert", filepath.Join(papers, "sidecar.crt"), "--tls-key", filepath.Join(papers, "sidecar.key"),
		"--tls-client-ca", filepath.Join(papers, "authority.crt"),
	}, strings.Fields(s.settings.extra)...))
	if err != nil {
		return nil, victim{}, err
	}
	for {
		log, err := os.ReadFile(started.log)
		for _, found := range listens.FindAllSubmatch(log, -1) {
			if address := string(found[1]); !strings.HasPrefix(address, "unix:") {
				return started, victim{Calls: address, Metrics: metrics, Admin: started.admin, Papers: papers}, nil
			}
		}
		if err = errors.Join(err, pause(ctx, 20*time.Millisecond)); err != nil {
			started.stop()
			return nil, victim{}, err
		}
	}
}
