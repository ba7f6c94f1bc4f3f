package doctor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/doctor"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A demanding ensemble demands something of clients, and may refuse the sidecar.
type demanding struct {
	doctor.Ensemble

	demand  zookeeper.Demand
	refuses bool
	known   []string // who the sidecar is
}

func (d demanding) Demand(context.Context, string) (zookeeper.Demand, error) { return d.demand, nil }

func (d demanding) WhoAmI(context.Context) ([]string, error) {
	return d.known, nil
}

func (d demanding) Get(ctx context.Context, path string) (recipes.Node, error) {
	if d.refuses {
		return recipes.Node{}, recipes.ErrAuthDemanded
	}
	return d.Ensemble.Get(ctx, path)
}

func TestWhatServersDemandIsComparedWithWhatIsGiven(t *testing.T) {
	t.Parallel()
	const kerberos, digest, me = "GSSAPI", "DIGEST-MD5", "GSSAPI as app@EXAMPLE.TEST"
	const known = "note ensemble: knows the sidecar as ip:127.0.0.1, sasl:app"
	for name, c := range map[string]struct {
		demand  zookeeper.Demand
		refuses bool
		want    []string
	}{
		"nothing": {zookeeper.Demand{}, false, nil},
		"the mechanism that is given": {
			zookeeper.Demand{Authentication: true, Mechanism: kerberos, Given: kerberos, As: me},
			false,
			[]string{"note A: demands authentication, SASL by GSSAPI; the sidecar gives " + me, known},
		},
		"nothing, and it knows the mechanism": {
			zookeeper.Demand{Mechanism: kerberos, Given: kerberos, As: me},
			false,
			[]string{"note A: takes part in SASL by GSSAPI, and serves clients that do not; the sidecar gives " + me, known},
		},
		"another mechanism": {
			zookeeper.Demand{Authentication: true, Mechanism: digest, Given: kerberos, As: me},
			false,
			[]string{"problem --zookeeper-sasl: A takes part in DIGEST-MD5, and the sidecar gives " + me, known},
		},
		"no mechanism": {
			zookeeper.Demand{Given: kerberos, As: me}, false, []string{"problem A: takes part in no SASL, and the sidecar gives " + me, known},
		},
		"one, and none is given": {
			zookeeper.Demand{Authentication: true, Mechanism: kerberos},
			true,
			[]string{"problem --zookeeper-sasl: A demands authentication and takes part in SASL by GSSAPI, and the sidecar gives none"},
		},
		"another scheme": {
			zookeeper.Demand{Authentication: true}, true, []string{"problem --zookeeper-auth-file: A demands authentication, and has no SASL"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.SASL = c.demand.Given != ""
			findings, err := doctor.Preflight(t.Context(), demanding{p.client, c.demand, c.refuses, []string{"ip:127.0.0.1", "sasl:app"}}, p.Settings)
			if (err != nil) != c.refuses {
				t.Error(err)
			}
			var got []string
			for _, f := range findings {
				line := strings.ReplaceAll(fmt.Sprintf("%v %s: %s", f.Severity, f.About, f.Text), p.Servers[0], "A")
				if strings.Contains(line, "sidecar gives") || strings.Contains(line, "knows the") || strings.Contains(line, "demands auth") {
					got = append(got, line)
				}
			}
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(c.want))) {
				t.Errorf("%q", got)
			}
		})
	}
}

// A server with allowSaslFailedClients=true does not tell the sidecar that it refuses it.
func TestASidecarThatIsNotKnownBySASLIsAProblem(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.SASL = true
	who := zookeeper.Demand{Mechanism: "GSSAPI", Given: "GSSAPI", As: "GSSAPI as app@EXAMPLE.TEST"}
	findings, err := doctor.Preflight(t.Context(), demanding{p.client, who, false, []string{"ip:127.0.0.1"}}, p.Settings)
	want := "knows the sidecar as ip:127.0.0.1, and not by SASL"
	if err != nil || !slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Severity == doctor.Problem && f.Text == want }) {
		t.Errorf("%v, %v", findings, err)
	}
}
