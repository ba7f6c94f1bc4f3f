package doctor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/internal/doctor"
)

// Another ensemble answers srvr as servers of another product do.
type otherEnsemble struct {
	doctor.Ensemble
	status string
}

func (e otherEnsemble) Ask(ctx context.Context, server, word string) (string, error) {
	if word == "srvr" {
		return e.status, nil
	}
	return e.Ensemble.Ask(ctx, server, word)
}

func TestServersThatOnlySpeakTheProtocolAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		token  int64
		want   []string
	}{
		"ClickHouse Keeper": {
			status: "ClickHouse Keeper version: v26.9.1.195-testing-4c1d9c8a\nLatency min/avg/max: 0/0/0\nZxid: 36\nMode: leader\n",
			token:  1 << 40,
			want: []string{
				"warning A: is ClickHouse Keeper v26.9.1.195-testing-4c1d9c8a: it",
				"note ensemble: no server reports its newest",
			},
		},
		"ZooKeeper": {
			status: "Zookeeper version: 3.9.5-1, built on 2026-01-01\nZxid: 0x10000000001\nMode: leader\n",
			token:  1 << 40,
			want:   []string{""},
		},
		"none that it names": {status: "Zxid: 0x0\nMode: leader\n", want: []string{"note A: does not report its version"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t)
			p.RememberedToken = c.token
			findings, err := doctor.Examine(t.Context(), otherEnsemble{p.client, c.status}, p.Settings, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, strings.Split(strings.ReplaceAll(strings.Join(lines(findings), "\n"), p.Servers[0], "A"), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
