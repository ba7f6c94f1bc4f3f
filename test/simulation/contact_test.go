package simulation_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/simulation"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// A log has one line when the ensemble is away, and one when it is back. It has none about a server that is replaced by another.
func TestTheLogTellsOnceThatTheEnsembleIsAwayAndOnceThatItIsBack(t *testing.T) {
	away := map[string]struct {
		begin, end func(e *simulation.Ensemble, server int)
		other      int    // than the leader: the one that is replaced. The others replace a frozen leader after 10 s only
		why        string // of each server, as a pattern
	}{
		"killed": {(*simulation.Ensemble).Kill, (*simulation.Ensemble).Start, 0, `: [^"]*refused`},
		"frozen": {(*simulation.Ensemble).Freeze, (*simulation.Ensemble).Thaw, 1, `[^"]*`},
	}
	for name, how := range away {
		inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			var book expect.Logbook
			began := time.Now()
			client, err := zookeeper.New(zookeeper.Config{
				Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
				Heartbeat: 2 * time.Second, Directories: []string{"/locks"}, Log: book.Logger(),
				Dial: e.Dialer(0), Clock: func() time.Duration { return time.Since(began) },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			lines := regexp.MustCompile(`(?m)^{"level":"(info|warn|error)".*contact with the ensemble.*\n`)
			told := func() string { return strings.Join(lines.FindAllString(book.Text(), -1), "") }
			for range 5 {
				w.close(w.open(t, client))
			}
			server := (e.Leader() + how.other) % len(e.Addresses())
			how.begin(e, server)
			time.Sleep(20 * time.Second)
			how.end(e, server)
			e.Await()
			time.Sleep(20 * time.Second)
			if said := told(); said != "" {
				t.Errorf("%s, of one server: %s", name, said)
			}
			for server := range e.Addresses() {
				how.begin(e, server)
			}
			time.Sleep(time.Minute)
			for server := range e.Addresses() {
				how.end(e, server)
			}
			e.Await()
			time.Sleep(20 * time.Second)
			address := `"[^"]*:\d+` + how.why + `"`
			want := `^{"level":"warn",.*"no contact with the ensemble","since":.*,"servers":\[` + address + `,` + address + `,` + address + `\].*}
{"level":"info",.*"contact with the ensemble is back","after":.*}
$`
			if said := told(); !regexp.MustCompile(want).MatchString(said) {
				t.Errorf("%s: %s", name, said)
			}
		})
	}
}
