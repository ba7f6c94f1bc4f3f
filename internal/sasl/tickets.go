package sasl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/types"
)

const (
	renewedFrom, renewedTo = 0.7, 0.8        // of a ticket's life, between which it is time for the next one
	freshFor               = 5 * time.Second // for so long a refusal is not taken for the ticket's fault
	forgottenIn            = 24 * time.Hour  // the ticket for a host that no server has any more
	looksAgain             = time.Minute     // how often it is looked which tickets are due, at the least
)

// The pause between two attempts to get a ticket doubles with jitter, from the first of these to one of the others.
const (
	retriedIn    = time.Second
	retryUnasked = time.Second     // if no KDC is asked
	retryUnheard = 5 * time.Second // if none answers
	retryMost    = time.Minute     // if one refuses, or its tickets are of no use
)

// kerberos is an Identity that keeps one ticket for each server.
type kerberos struct {
	Kerberos

	fetch  func(service types.PrincipalName, realm string) (ticket, error)
	grants grants

	mu      sync.Mutex
	who     string           // the client as the newest ticket names it; empty before the first
	tickets map[string]*kept // by the server's host
	changed chan struct{}    // gets something when a ticket has come, or is due sooner
}

// kept is the newest ticket for one service, and what becomes of the next one.
type kept struct {
	service types.PrincipalName
	realm   string    // of the service; empty if the settings of Kerberos say which
	asked   time.Time // when a connection needed the ticket last

	ticket  ticket
	got     time.Time // zero before the first
	renew   time.Time // when the next one is due, as long as this one serves
	refused bool      // a server has refused it

	fetched chan struct{} // the next one is asked for
	err     error         // of the newest attempt to get one
	useless int           // attempts in a row that brought none, or one that a server has refused
	again   time.Time     // when the next one is due, if there is none that serves
}

// NewKerberos makes the identity of a principal. An error says which file cannot be used. Whether there is a ticket to be had is found out
// later, by Ready.
func NewKerberos(options Kerberos) (Identity, error) {
	settings, err := options.settings()
	if err != nil {
		return nil, err
	}
	if options.Keytab != "" {
		if err := options.hasKey(settings); err != nil {
			return nil, err
		}
	}
	k := &kerberos{Kerberos: options, tickets: make(map[string]*kept), changed: make(chan struct{}, 1)}
	k.fetch = k.fetchByLogin
	return k, nil
}

func (k *kerberos) Mechanism() string { return GSSAPI }

func (k *kerberos) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.who != "":
		return GSSAPI + " as " + k.who
	case k.Principal != "":
		return GSSAPI + " as " + k.Principal
	}
	return GSSAPI + " as the owner of the credential cache"
}

func (k *kerberos) Ready(ctx context.Context, host string) error {
	wanted, fetched := k.want(host)
	if wanted == nil {
		return nil
	}
	select {
	case <-fetched:
		return k.failure(wanted)
	case <-ctx.Done():
		if err := k.failure(wanted); err != nil {
			return err
		}
		return fmt.Errorf("no ticket for %s: %w", wanted.service.PrincipalNameString(), ErrUnreached)
	}
}

// want has the next ticket fetched if it is time. It returns what is to be waited for: nothing if there is a ticket that is valid.
func (k *kerberos) want(host string) (wanted *kept, fetched <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := k.tickets[host]
	if held == nil {
		held = &kept{}
		held.service, held.realm = k.of(host)
		k.tickets[host] = held
	}
	now := time.Now()
	held.asked = now
	if held.fetched == nil && !now.Before(held.due(now)) {
		k.begin(held, now)
	}
	switch {
	case held.valid(now):
		return nil, nil
	case held.fetched == nil: // it was refused a moment ago
		return held, closed
	}
	return held, held.fetched
}

// closed is a channel that is.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (h *kept) valid(now time.Time) bool { return !h.got.IsZero() && now.Before(h.ticket.ends) }

// serves says whether a ticket is needed only because the present one will run out.
func (h *kept) serves(now time.Time) bool { return h.valid(now) && !h.refused && h.err == nil }

// due is when the next ticket is to be asked for.
func (h *kept) due(now time.Time) time.Time {
	if h.serves(now) {
		return h.renew
	}
	return h.again
}

// begin has a ticket fetched beside its caller, since the library waits for KDCs as long as it likes. The lock is held.
func (k *kerberos) begin(held *kept, now time.Time) {
	if held.serves(now) {
		held.useless = 0
	}
	done := make(chan struct{})
	held.fetched = done
	go func() {
		got, err := k.fetch(held.service, held.realm)
		k.mu.Lock()
		defer k.mu.Unlock()
		if err == nil && k.who != "" && got.who() != k.who {
			err = fmt.Errorf("the ticket is %s's, and the sidecar is %s: start it again", got.who(), k.who)
		}
		if err == nil {
			k.who = got.who()
			held.take(got, time.Now())
		} else {
			held.fail(err, time.Now())
		}
		held.fetched = nil
		close(done)
		k.tell()
	}()
}

// tell has Keep look again. The lock is held.
func (k *kerberos) tell() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// take replaces the ticket by a new one. The lock is held.
func (h *kept) take(got ticket, now time.Time) {
	if h.err != nil {
		h.useless = 0
	}
	at := renewedFrom + (renewedTo-renewedFrom)*rand.Float64() //nolint:gosec // so that not all tickets are due at once
	h.ticket, h.got, h.refused, h.err = got, now, false, nil
	h.renew = now.Add(time.Duration(float64(got.ends.Sub(now)) * at))
	h.again = now
}

// fail notes that no new ticket was to be had. The old one is used for as long as it lasts. The lock is held.
func (h *kept) fail(err error, now time.Time) {
	h.useless++
	h.err, h.again = err, now.Add(pauseAfter(err, h.useless))
	if login, failed := errors.AsType[failedLogin](err); failed {
		h.again = login.until // which other tickets wait for, too
	}
}

// pauseAfter is for how long a KDC is left alone after so many useless attempts in a row.
func pauseAfter(err error, times int) time.Duration {
	most := retryMost
	if _, local := errors.AsType[unasked](err); local {
		most = retryUnasked
	} else if errors.Is(err, ErrUnreached) {
		most = retryUnheard
	}
	pause := min(retriedIn<<min(times-1, 10), most)
	return pause/2 + rand.N(pause/2) //nolint:gosec // jitter is no secret
}

// failure says why there is no ticket; nil if there is one.
func (k *kerberos) failure(held *kept) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if held.err == nil {
		return nil
	}
	return fmt.Errorf("no ticket for %s: %w", held.service.PrincipalNameString(), held.err)
}

func (k *kerberos) Begin(host string) (Exchange, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := k.tickets[host]
	if held == nil || !held.valid(time.Now()) {
		return nil, fmt.Errorf("no ticket for the server at %s", host)
	}
	return guarded(&gssExchange{ticket: held.ticket}), nil
}

// Refused has the ticket replaced, unless it is new: the server's key may be another one by now. The ticket is used until the new one has come:
// other servers may bear it, and a KDC may not answer.
func (k *kerberos) Refused(host string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	held, now := k.tickets[host], time.Now()
	if held == nil || held.refused || held.fetched != nil || !held.serves(now) || now.Sub(held.got) <= freshFor {
		return
	}
	held.refused = true
	held.useless++
	held.again = held.got.Add(pauseAfter(nil, held.useless))
	if now.Before(held.again) {
		k.tell()
	} else {
		k.begin(held, now)
	}
}

func (k *kerberos) Keep(ctx context.Context, needed func(host string) bool, failed func(host string, err error)) {
	for ctx.Err() == nil {
		pause, failures := k.renew(needed)
		for host, err := range failures {
			failed(host, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-k.changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// renew begins to fetch all tickets that are due, and returns for how long none is, and which were not to be had. It forgets those that are
// not needed any more.
func (k *kerberos) renew(needed func(host string) bool) (pause time.Duration, failures map[string]error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pause, failures = looksAgain, make(map[string]error)
	now := time.Now()
	for host, held := range k.tickets {
		switch {
		case held.fetched != nil:
			continue
		case now.Sub(held.asked) > forgottenIn && !needed(host):
			delete(k.tickets, host)
			continue
		case held.got.IsZero(): // the next connection has one fetched
			continue
		}
		if held.err != nil {
			failures[host] = fmt.Errorf("no new ticket for %s; the old one runs out at %s: %w",
				held.service.PrincipalNameString(), held.ticket.ends.Format(time.RFC3339), held.err)
		}
		if due := held.due(now).Sub(now); due > 0 {
			pause = min(pause, due)
		} else {
			k.begin(held, now)
		}
	}
	return pause, failures
}

// IsPrincipal says whether the text is NAME, NAME/HOST, or either with @REALM.
func IsPrincipal(text string) bool {
	name, realm, realmed := strings.Cut(text, "@")
	parts := strings.Split(name, "/")
	empty := realmed && realm == "" || slices.Contains(parts, "")
	return !empty && len(parts) <= 2 && !strings.Contains(realm, "@") && !strings.ContainsAny(text, " \t\n\r\\\x00")
}
