package inject

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const host = "injector.system.svc"

// A kubernetes is a cluster in memory.
type kubernetes struct {
	secret  map[string][]byte
	version int
	saves   int
	bundle  []byte // that API servers know
	down    atomic.Bool
}

func (k *kubernetes) load(context.Context) (map[string][]byte, func(context.Context, map[string][]byte) error, error) {
	if k.down.Load() {
		return nil, nil, errors.New("no API server")
	}
	version := k.version
	return maps.Clone(k.secret), func(_ context.Context, data map[string][]byte) error {
		if k.version != version {
			return errConflict
		}
		k.secret, k.version, k.saves = data, k.version+1, k.saves+1
		return nil
	}, nil
}

func (k *kubernetes) announce(_ context.Context, bundle []byte) (bool, error) {
	news := !bytes.Equal(k.bundle, bundle)
	k.bundle = bundle
	return news, nil
}

func keeper(cluster cluster) *Keeper {
	return &Keeper{
		schedule: schedule{host: host, lifetime: 90 * 24 * time.Hour}, cluster: cluster, log: zap.NewNop(), metrics: newMetrics(),
	}
}

// trusts says whether an API server that knows the bundle accepts what a keeper serves with.
func (k *kubernetes) trusts(keeper *Keeper) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(k.bundle)
	_, err := keeper.certificate().Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, CurrentTime: time.Now()})
	return err
}

func TestForAYearEveryAPIServerTrustsEveryInjector(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cluster := &kubernetes{secret: map[string][]byte{}}
		keepers := []*Keeper{keeper(cluster), keeper(cluster)}
		serials := map[string]bool{}
		for start := time.Now(); time.Since(start) < 365*24*time.Hour; time.Sleep(6 * time.Hour) { //nolint:forbidigo // in synctest's virtual time
			for _, each := range keepers {
				if err := each.look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, each := range keepers {
				if err := cluster.trusts(each); err != nil {
					t.Fatalf("after %s: %v", time.Since(start), err)
				}
				serials[each.certificate().Leaf.SerialNumber.String()] = true
			}
			if left := time.Until(keepers[0].certificate().Leaf.NotAfter); left < 29*24*time.Hour {
				t.Fatalf("after %s the certificate is valid for %s", time.Since(start), left)
			}
		}
		if len(serials) != 7 { // at once, and each 60 days
			t.Errorf("%d certificates in a year", len(serials))
		}
		if cluster.saves != 1+2*6+5 { // the first; six renewals in two steps each; five authorities that have expired
			t.Errorf("the Secret was written %d times", cluster.saves)
		}
	})
}

func TestAnAuthorityIsAnnouncedBeforeAnybodyServesWithWhatItHasSigned(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cluster := &kubernetes{secret: map[string][]byte{}}
		k := keeper(cluster)
		look := func(later time.Duration) string {
			time.Sleep(later) //nolint:forbidigo // in synctest's virtual time
			if err := k.look(t.Context()); err != nil {
				t.Fatal(err)
			}
			return k.certificate().Leaf.SerialNumber.String()
		}
		first := look(0)
		if look(60*24*time.Hour) != first || len(cluster.secret[nextKey]) == 0 {
			t.Error("when a third is left the next pair is not made, or used at once")
		}
		if look(9*time.Minute) != first {
			t.Error("the next pair is used before its authority has settled")
		}
		if look(2*time.Minute) == first {
			t.Error("the next pair is not used after its authority has settled")
		}
	})
}

func TestAnInjectorThatCannotReachTheSecretServesOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cluster := &kubernetes{secret: map[string][]byte{}}
		k := keeper(cluster)
		k.schedule.lifetime = 9 * time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.run(ctx)
		}()
		synctest.Wait()
		first := k.certificate()
		cluster.down.Store(true)
		time.Sleep(6*time.Hour + time.Second) //nolint:forbidigo // in synctest's virtual time
		synctest.Wait()
		if k.certificate() != first {
			t.Error("it serves with something else")
		}
		cluster.down.Store(false)
		time.Sleep(20*time.Minute + time.Second) //nolint:forbidigo // in synctest's virtual time
		synctest.Wait()
		if k.certificate().Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) == 0 || cluster.trusts(k) != nil {
			t.Error("the certificate was not renewed after the outage")
		}
		cancel()
		<-done
	})
}

func TestWhoIsSecondToWriteUsesWhatTheFirstHasWritten(t *testing.T) {
	cluster := &kubernetes{secret: map[string][]byte{}}
	first, second := keeper(cluster), keeper(nil)
	second.cluster = &overtaken{kubernetes: cluster, by: func() {
		if err := first.look(t.Context()); err != nil {
			t.Error(err)
		}
	}}
	if err := second.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cluster.saves != 1 || first.certificate().Leaf.SerialNumber.Cmp(second.certificate().Leaf.SerialNumber) != 0 {
		t.Errorf("the Secret was written %d times, and they serve with different certificates", cluster.saves)
	}
}

// overtaken lets somebody else write between its first load and save, or between each.
type overtaken struct {
	*kubernetes
	by     func()
	always bool
}

func (o *overtaken) load(ctx context.Context) (map[string][]byte, func(context.Context, map[string][]byte) error, error) {
	data, save, err := o.kubernetes.load(ctx)
	if o.always {
		o.version++
	}
	if o.by != nil {
		o.by()
		o.by = nil
	}
	return data, save, err
}

func TestAConflictThatStaysIsGivenUpForNow(t *testing.T) {
	k := keeper(&overtaken{kubernetes: &kubernetes{secret: map[string][]byte{}}, always: true})
	if err := k.look(t.Context()); !errors.Is(err, errConflict) {
		t.Errorf("got %v", err)
	}
}

func TestASecretThatSomebodyHasSpoiledIsMadeAnew(t *testing.T) {
	for name, spoil := range map[string]func(map[string][]byte){
		"emptied":          func(data map[string][]byte) { clear(data) },
		"no key":           func(data map[string][]byte) { delete(data, currentKey) },
		"no certificate":   func(data map[string][]byte) { data[currentCertificate] = []byte("x") },
		"a bundle of none": func(data map[string][]byte) { data[bundleKey], data[currentKey] = []byte("x"), nil },
		"another host's": func(data map[string][]byte) {
			made, authority, err := issue("other", time.Now(), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			data[currentCertificate], data[currentKey], data[bundleKey] = made.Certificate, made.Key, authority
		},
	} {
		cluster := &kubernetes{secret: map[string][]byte{}}
		k := keeper(cluster)
		if err := k.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		spoil(cluster.secret)
		for range 2 { // API servers are told first what the Secret says
			if err := k.look(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := cluster.trusts(k); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
