package inject

import (
	"bytes"
	"slices"
	"time"
)

// A vault is what the Secret that all injectors share holds: the pair they serve with, the one they will serve with next, and
// the authorities of both and of those before them.
type vault struct {
	current, next pair
	since         time.Time // when next was made
	bundle        []byte
}

// What the vault's parts are called in the Secret.
const (
	currentCertificate = "tls.crt"
	currentKey         = "tls.key"
	nextCertificate    = "next.crt"
	nextKey            = "next.key"
	nextSince          = "next.since"
	bundleKey          = "ca.crt"
)

func vaultOf(data map[string][]byte) vault {
	since, err := time.Parse(time.RFC3339Nano, string(data[nextSince]))
	v := vault{
		current: pair{Certificate: data[currentCertificate], Key: data[currentKey]},
		next:    pair{Certificate: data[nextCertificate], Key: data[nextKey]},
		since:   since,
		bundle:  data[bundleKey],
	}
	if err != nil {
		v.next = pair{} // nobody knows since when API servers trust it
	}
	return v
}

func (v vault) data() map[string][]byte {
	data := map[string][]byte{
		currentCertificate: v.current.Certificate, currentKey: v.current.Key, bundleKey: v.bundle,
	}
	if v.next.Key != nil {
		data[nextCertificate], data[nextKey] = v.next.Certificate, v.next.Key
		data[nextSince] = []byte(v.since.UTC().Format(time.RFC3339Nano))
	}
	return data
}

// A schedule is how long certificates are valid, and for whom.
type schedule struct {
	host     string
	lifetime time.Duration
}

// A certificate is renewed when a third of its life is left, so that failures to do so have time to be noticed.
func (s schedule) renewal() time.Duration { return s.lifetime / 3 }

// settling is for how long API servers get to know an authority before anybody serves with what it has signed.
func (s schedule) settling() time.Duration { return min(10*time.Minute, s.lifetime/12) }

// interval is how often the vault is looked at.
func (s schedule) interval() time.Duration { return min(time.Minute, s.lifetime/24) }

// turn is the vault as it should be now, given that API servers have been told its bundle. One with a good certificate changes
// in two steps: the next pair's authority joins the bundle, and when that has settled the pair is used.
func (s schedule) turn(v vault, now time.Time) (vault, bool, error) {
	bundle := stillValid(v.bundle, now)
	changed := !bytes.Equal(bundle, v.bundle)
	v.bundle = bundle

	expiry, good := s.expiry(v.current, now)
	_, nextGood := s.expiry(v.next, now)
	switch {
	case !good && !nextGood:
		made, authority, err := issue(s.host, now, s.lifetime)
		return vault{current: made, bundle: slices.Concat(authority, bundle)}, true, err
	case nextGood && (!good || now.Sub(v.since) >= s.settling()):
		v.current, v.next, v.since = v.next, pair{}, time.Time{}
		return v, true, nil
	case !nextGood && expiry.Sub(now) <= s.renewal():
		made, authority, err := issue(s.host, now, s.lifetime)
		v.next, v.since, v.bundle = made, now, slices.Concat(authority, bundle)
		return v, true, err
	default:
		return v, changed, nil
	}
}

// expiry is when a pair's validity ends, and whether it is any good until then.
func (s schedule) expiry(p pair, now time.Time) (time.Time, bool) {
	loaded, err := p.Load(currentCertificate, currentKey)
	if err != nil || loaded.Leaf.VerifyHostname(s.host) != nil {
		return time.Time{}, false
	}
	return loaded.Leaf.NotAfter, loaded.Leaf.NotAfter.After(now)
}
