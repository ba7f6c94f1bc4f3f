package inject

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// rereading is how often files are looked at. The kubelet takes a minute or more to bring a new Secret into a pod.
const rereading = 10 * time.Second

// A keyFile is a pair that somebody else, cert-manager for example, keeps in files and replaces in time.
type keyFile struct {
	certificatePath, keyPath string
	log                      *zap.Logger
	metrics                  *metrics
	serving                  atomic.Pointer[tls.Certificate]
}

// newKeyFile reads the files, which must be good to begin with.
func newKeyFile(certificate, key string, log *zap.Logger, metrics *metrics) (*keyFile, error) {
	k := &keyFile{certificatePath: certificate, keyPath: key, log: log, metrics: metrics}
	err := k.read()
	return k, err
}

func (k *keyFile) certificate() *tls.Certificate { return k.serving.Load() }

// run reads the files again and again until ctx ends. While they cannot be read or do not fit together, the last good ones serve.
func (k *keyFile) run(ctx context.Context) {
	for {
		select {
		case <-time.After(rereading):
		case <-ctx.Done():
			return
		}
		if err := k.read(); err != nil {
			k.metrics.failures.Inc()
			k.log.Error("the webhook's certificate was not read again; the last good one is used", zap.Error(err))
		}
	}
}

func (k *keyFile) read() error {
	loaded, err := tls.LoadX509KeyPair(k.certificatePath, k.keyPath)
	if err != nil {
		return fmt.Errorf("%s with %s: %w", k.certificatePath, k.keyPath, err)
	}
	k.serving.Store(&loaded)
	k.metrics.expiry.Set(time.Until(loaded.Leaf.NotAfter).Seconds())
	return nil
}
