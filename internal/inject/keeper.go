package inject

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// maxConflicts is how often in a row somebody else may be first to write.
const maxConflicts = 5

// errConflict is that somebody else has written the Secret since it was read.
var errConflict = errors.New("the Secret was changed concurrently")

// A cluster is what a Keeper needs of Kubernetes.
type cluster interface {
	// load reads the Secret, and returns how to write it provided that nobody has since; if somebody has, that returns errConflict.
	load(ctx context.Context) (data map[string][]byte, save func(context.Context, map[string][]byte) error, err error)

	// announce makes API servers trust the authorities of the bundle when they call the webhook. News is whether they did not yet.
	announce(ctx context.Context, bundle []byte) (news bool, err error)
}

// A Keeper makes the webhook's certificates and renews them. All injectors of a cluster share one Secret: whoever sees first
// that something is due writes it, and the others read what was written. A new authority is announced to the API servers a
// while before anybody serves with what it has signed, and an old one until it has expired, so that at any time each API
// server trusts each injector.
type Keeper struct {
	schedule schedule
	cluster  cluster
	log      *zap.Logger
	metrics  *metrics
	serving  atomic.Pointer[tls.Certificate]
}

func (k *Keeper) certificate() *tls.Certificate { return k.serving.Load() }

// run keeps the certificates until ctx ends.
func (k *Keeper) run(ctx context.Context) {
	for {
		pause := k.schedule.interval()
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.metrics.failures.Inc()
			k.log.Error("the webhook's certificate could not be maintained; retrying", zap.Error(err))
			pause = min(pause, 5*time.Second)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// look reads the vault, does what is due and serves with its current pair. Whoever is second to write reads again, though not
// for ever: what looks like a conflict may be a refusal that stays.
func (k *Keeper) look(ctx context.Context) (err error) {
	for range maxConflicts {
		if err = k.lookOnce(ctx); !errors.Is(err, errConflict) {
			return err
		}
	}
	return err
}

func (k *Keeper) lookOnce(ctx context.Context) error {
	data, save, err := k.cluster.load(ctx)
	if err != nil {
		return err
	}
	found := vaultOf(data)
	if len(found.bundle) > 0 {
		news, err := k.cluster.announce(ctx, found.bundle)
		if err != nil {
			return err
		}
		if _, good := k.schedule.expiry(found.current, time.Now()); good && news {
			return k.serve(found.current) // API servers get until the next look to learn the news
		}
	}
	turned, changed, err := k.schedule.turn(found, time.Now())
	if err != nil {
		return err
	}
	if changed {
		if err := save(ctx, turned.data()); err != nil {
			return err
		}
		if _, err := k.cluster.announce(ctx, turned.bundle); err != nil {
			return err
		}
	}
	return k.serve(turned.current)
}

// serve uses a pair from now on. Connections that are open go on.
func (k *Keeper) serve(current pair) error {
	loaded, err := current.Load("the Secret's "+currentCertificate, currentKey)
	if err != nil {
		return err
	}
	before := k.serving.Swap(loaded)
	if before == nil || before.Leaf.SerialNumber.Cmp(loaded.Leaf.SerialNumber) != 0 {
		k.log.Info("serving with a new certificate", zap.Time("until", loaded.Leaf.NotAfter))
	}
	k.metrics.expiry.Set(time.Until(loaded.Leaf.NotAfter).Seconds())
	return nil
}
