package sasl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/types"
)

const (
	renewedAt = 0.8             // of a ticket's life, it is time for the next one
	freshFor  = 5 * time.Second // for so long a refusal is not taken for the ticket's fault
	retriedIn = time.Second     // after so long a KDC that has refused is asked again, at the soonest,
	retryMost = time.Minute     // and at the latest
)

// kerberos is an Identity that keeps one ticket for each server.
type kerberos struct {
	Kerberos

	mu      sync.Mutex
	who     string           // the client as the newest ticket names it; empty before the first
	tickets map[string]*kept // by the server's host
	changed chan struct{}    // gets something when a ticket has come
}

// kept is the newest ticket for one service, and what becomes of the next one.
type kept struct {
	service types.PrincipalName
	realm   string // of the service; empty if the settings of Kerberos say which
	ticket  ticket
	got     time.Time // zero before the first, and when it is to be replaced
	fetched chan struct{}
	err     error // of the newest attempt to get one
	tried   time.Time
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
	return &kerberos{Kerberos: options, tickets: make(map[string]*kept), changed: make(chan struct{}, 1)}, nil
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
	valid := !held.got.IsZero() && now.Before(held.ticket.ends)
	due := held.due()
	if !valid { // it is wanted now
		due = held.tried.Add(retriedIn)
	}
	if held.fetched == nil && (!now.Before(due) || !valid && held.err == nil) {
		k.begin(held, now)
	}
	switch {
	case valid:
		return nil, nil
	case held.fetched == nil: // it was refused a moment ago
		return held, closed
	}
	return held, held.fetched
}

// closed is a channel that is.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// due is when the next ticket is to be asked for, though no connection needs it yet: when the present one has lived for most of its life,
// and then at intervals.
func (h *kept) due() time.Time {
	life := h.ticket.ends.Sub(h.got)
	due := h.got.Add(time.Duration(float64(life) * renewedAt))
	if again := h.tried.Add(min(max(life/20, retriedIn), retryMost)); h.err != nil && again.After(due) {
		return again
	}
	return due
}

// begin has a ticket fetched beside its caller, since the library waits for KDCs as long as it likes. The lock is held.
func (k *kerberos) begin(held *kept, now time.Time) {
	done := make(chan struct{})
	held.fetched, held.tried = done, now
	go func() {
		got, err := k.fetch(held.service, held.realm)
		k.mu.Lock()
		defer k.mu.Unlock()
		if err == nil && k.who != "" && got.who() != k.who {
			err = fmt.Errorf("the ticket is %s's, and the sidecar is %s: start it again", got.who(), k.who)
		}
		if held.err = err; err == nil {
			held.ticket, held.got, k.who = got, time.Now(), got.who()
		}
		held.fetched = nil
		close(done)
		select {
		case k.changed <- struct{}{}:
		default:
		}
	}()
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
	if held == nil || held.got.IsZero() || !time.Now().Before(held.ticket.ends) {
		return nil, fmt.Errorf("no ticket for the server at %s", host)
	}
	return guarded(&gssExchange{ticket: held.ticket}), nil
}

// Refused has the ticket replaced, unless it is new: the server's key may be another one by now.
func (k *kerberos) Refused(host string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if held := k.tickets[host]; held != nil && time.Since(held.got) > freshFor {
		held.got, held.err = time.Time{}, nil
	}
}

func (k *kerberos) Keep(ctx context.Context, failed func(host string, err error)) {
	for ctx.Err() == nil {
		pause, failures := k.renew()
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

// renew begins to fetch all tickets that are due, and returns for how long none is, and which were not to be had.
func (k *kerberos) renew() (pause time.Duration, failures map[string]error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pause, failures = retryMost, make(map[string]error)
	now := time.Now()
	for host, held := range k.tickets {
		if held.fetched != nil || held.got.IsZero() { // the next connection has one fetched
			continue
		}
		if held.err != nil {
			failures[host] = fmt.Errorf("no new ticket for %s; the old one runs out at %s: %w",
				held.service.PrincipalNameString(), held.ticket.ends.Format(time.RFC3339), held.err)
		}
		if due := held.due().Sub(now); due > 0 {
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
