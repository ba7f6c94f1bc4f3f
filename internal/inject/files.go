package inject

import (
	"context"
	"crypto/tls"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/reload"
)

// reloadInterval is how often files are looked at. The kubelet takes a minute or more to bring a new Secret into a pod.
const reloadInterval = 10 * time.Second

// A keyFile is a pair that somebody else, cert-manager for example, keeps in files and replaces in time.
type keyFile struct {
	log     *zap.Logger
	metrics *metrics
	files   *reload.Files[*tls.Certificate]
}

// newKeyFile reads the files, which must be good to begin with.
func newKeyFile(certificate, key string, log *zap.Logger, metrics *metrics) (k *keyFile, err error) {
	k = &keyFile{log: log, metrics: metrics}
	k.files, err = reload.Open(func(contents [][]byte) (*tls.Certificate, error) {
		return pair{Certificate: contents[0], Key: contents[1]}.Load(certificate, key)
	}, k.report, certificate, key)
	if err != nil {
		return nil, err
	}
	k.measure()
	return k, nil
}

func (k *keyFile) certificate() *tls.Certificate { return k.files.Last() }

func (k *keyFile) report(_ *tls.Certificate, trouble error) {
	if trouble != nil {
		k.log.Error("the webhook's certificate was not reloaded; the last valid one is used", zap.Error(trouble))
	}
}

// run reads the files again and again until ctx ends. While they cannot be read or do not fit together, the last good ones serve.
func (k *keyFile) run(ctx context.Context) {
	for {
		select {
		case <-time.After(reloadInterval):
		case <-ctx.Done():
			return
		}
		if err := k.files.Look(); err != nil {
			k.metrics.failures.Inc()
		}
		k.measure()
	}
}

func (k *keyFile) measure() {
	k.metrics.expiry.Set(time.Until(k.certificate().Leaf.NotAfter).Seconds())
}
