// Package doctor looks at an ensemble and at the locks in it, and says in plain words what is wrong or risky. It only
// reads.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// Severity is how bad something is.
type Severity int

// The gravities.
const (
	Note    Severity = iota // good to know
	Warning                 // will hurt under circumstances
	Problem                 // hurts
)

func (s Severity) String() string { return [...]string{"note", "warning", "problem"}[s] }

// MarshalText makes a word of it, also in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Finding is one thing to know about the ensemble, a setting or a lock.
type Finding struct {
	Severity Severity `json:"severity"`
	About    string   `json:"about"` // a server, a flag, or a node's path
	Text     string   `json:"text"`
	Advice   string   `json:"advice"`
}

// An Ensemble is what is looked at; see zookeeper.Client.
type Ensemble interface {
	recipes.Tree
	Inspect(ctx context.Context, path string) (zookeeper.Inspection, error)
	Ask(ctx context.Context, server, word string) (string, error)
	Demand(ctx context.Context, server string) (zookeeper.Demand, error)
	WhoAmI(ctx context.Context) ([]string, error)
}

// Settings are those of the sidecar that the ensemble is to serve.
type Settings struct {
	Servers        []string
	SessionTimeout time.Duration
	TickTime       time.Duration
	SyncLimit      int
	Observers      bool               // sessions may be attached to observers
	FollowServers  bool               // those that the ensemble lists, too
	Credentials    bool               // the sidecar shows the ensemble who it is, by a password or a certificate
	SASL           bool               // both prove it to each other
	Secure         bool               // over TLS
	Validity       zookeeper.Validity // of SessionTimeout
	MostLeases     int
	Root           string
	LockRoot       string
	Directories    []string      // in which all things lie
	RecheckAfter   time.Duration // when empty directories are looked at again; 0 for not at all
	// RememberedToken is the largest fencing token that is known to have been granted; 0 if that is not known.
	RememberedToken int64
	Secrets         map[string]string // files with keys and passwords, by flag without its dashes

	// Dial tries whether others reach the servers; nil for net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// An examination is one look at everything.
type examination struct {
	Settings
	strict   bool // whether what cannot be found out is a warning, since nothing rules it out
	ensemble Ensemble
	findings []Finding
}

// Examine looks at the ensemble and at the locks with these paths, or at all below the lock root. The most severe finding comes
// first. An error means that the ensemble did not let itself be looked at.
func Examine(ctx context.Context, ensemble Ensemble, settings Settings, locks []string) ([]Finding, error) {
	e := &examination{Settings: settings, ensemble: ensemble}
	err := e.preflight(ctx)
	for _, look := range []func(context.Context) error{e.quotas, e.names, func(ctx context.Context) error { return e.locks(ctx, locks) }} {
		if err == nil {
			err = look(ctx)
		}
	}
	return e.bySeverity(), err
}

// Preflight looks at what must be right before a sidecar serves: the servers, the settings and the ACLs, and not at locks. What
// cannot be found out is a warning. The most severe finding comes first.
func Preflight(ctx context.Context, ensemble Ensemble, settings Settings) ([]Finding, error) {
	e := &examination{Settings: settings, ensemble: ensemble, strict: true}
	err := e.preflight(ctx)
	return e.bySeverity(), err
}

// bySeverity is what was found, the most severe first.
func (e *examination) bySeverity() []Finding {
	slices.SortStableFunc(e.findings, func(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	return e.findings
}

// preflight is what Examine and Preflight have in common.
func (e *examination) preflight(ctx context.Context) error {
	e.servers(ctx)
	e.validity()
	e.protection()
	e.openings(ctx)
	e.secrets()
	err := e.members(ctx)
	e.demands(ctx, err)
	if err != nil {
		return err
	}
	return e.root(ctx)
}

// unknown is how bad it is not to know.
func (e *examination) unknown() Severity {
	if e.strict {
		return Warning
	}
	return Note
}

func (e *examination) findf(severity Severity, about, advice, format string, details ...any) {
	e.findings = append(e.findings, Finding{severity, about, fmt.Sprintf(format, details...), advice})
}
