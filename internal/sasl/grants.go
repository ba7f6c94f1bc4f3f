package sasl

import (
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// A grant is what a login is worth: a ticket with which others are asked for.
type grant struct {
	name      types.PrincipalName // the client's
	realm     string
	ticket    messages.Ticket
	key       types.EncryptionKey
	got, ends time.Time
}

// grants are the logins of one identity, whose tickets share them: the tickets for all servers are due at about the same time. Failures are
// shared, too, since a KDC may lock a principal after a few of them.
type grants struct {
	mu       sync.Mutex // held while a login is under way
	newest   grant
	failed   *failedLogin
	failures int // in a row
}

// sharedFor is for which part of its life a grant is shared. What is asked for by it lasts no longer than it does.
const sharedFor = 0.1

// A failedLogin is why there was none, and until when no other is tried.
type failedLogin struct {
	error

	until time.Time
}

func (f failedLogin) Unwrap() error { return f.error }

// unasked wraps an error for which no KDC was asked.
type unasked struct{ error }

func (u unasked) Unwrap() error { return u.error }

// get returns the newest grant while it is shared, and else what login gets.
func (g *grants) get(login func() (grant, error)) (grant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	switch shared := time.Duration(float64(g.newest.ends.Sub(g.newest.got)) * sharedFor); {
	case g.failed != nil && now.Before(g.failed.until):
		return grant{}, *g.failed
	case g.failed == nil && now.Before(g.newest.got.Add(shared)):
		return g.newest, nil
	}
	got, err := login()
	if err != nil {
		g.failures++
		g.failed = &failedLogin{err, time.Now().Add(pauseAfter(err, g.failures))}
		return grant{}, *g.failed
	}
	g.newest, g.failed, g.failures = got, nil, 0
	return got, nil
}

// forget has the next ticket asked for by a new login.
func (g *grants) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.newest = grant{}
}

// fetchByLogin gets a ticket for a service: with the keytab and the settings as the files hold them now, or with the ticket that lies in the
// credential cache now.
func (k *kerberos) fetchByLogin(service types.PrincipalName, realm string) (got ticket, err error) {
	defer func() { err = orPanic(err, recover(), "the KDC's answer cannot be read") }()
	settings, err := k.settings()
	if err != nil {
		return ticket{}, unasked{err}
	}
	by, err := k.grant(settings)
	if err != nil {
		return ticket{}, err
	}
	if got, err = by.ask(settings, service, realm); err != nil {
		k.grants.forget()
	}
	return got, err
}

func (k *kerberos) grant(settings *config.Config) (grant, error) {
	if k.Keytab != "" {
		return k.grants.get(func() (grant, error) { return k.login(settings) })
	}
	cached, err := k.takeCached(settings)
	if err != nil {
		return grant{}, unasked{err}
	}
	return cached, nil
}
