package service

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"
)

// TLSFiles are what a listener beyond this machine needs, all PEM: its certificate with the chain, the key of that, and
// the authorities whose client certificates it accepts. The files may be replaced at any time: new connections use the new
// ones, open ones go on.
type TLSFiles struct{ Certificate, Key, ClientCA string }

// complete says whether all three are named; some but not all is an error.
func (f TLSFiles) complete() (bool, error) {
	if f == (TLSFiles{}) {
		return false, nil
	}
	if f.Certificate == "" || f.Key == "" || f.ClientCA == "" {
		return false, errors.New("--tls-cert, --tls-key and --tls-client-ca go together: all three or none")
	}
	return true, nil
}

// A keyring is the TLS configuration that lies in files, read again when they have changed.
type keyring struct {
	files TLSFiles
	log   *zap.Logger

	mutex   sync.Mutex
	stamps  [3]stamp
	current *tls.Config
}

// A stamp tells versions of a file apart, also when a symbolic link leads to another file of the same age.
type stamp struct{ os.FileInfo }

func (s stamp) equals(other stamp) bool {
	return s.ModTime().Equal(other.ModTime()) && s.Size() == other.Size() && os.SameFile(s.FileInfo, other.FileInfo)
}

// newKeyring reads the files; later versions that cannot be read or do not fit together are logged and the last good
// ones used.
func newKeyring(files TLSFiles, log *zap.Logger) (*keyring, error) {
	ring := &keyring{files: files, log: log}
	err := ring.reload()
	return ring, err
}

// config is what a listener needs of the ring.
func (k *keyring) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return k.newest(), nil },
	}
}

func (k *keyring) newest() *tls.Config {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if err := k.reload(); err != nil {
		k.log.Error("TLS files not reloaded; the last good ones are used", zap.Error(err))
	}
	return k.current
}

func (k *keyring) reload() error {
	stamps, err := k.look()
	if err != nil {
		return err
	}
	if k.current != nil && unchanged(k.stamps, stamps) {
		return nil
	}
	config, err := k.files.load()
	if err != nil {
		return err
	}
	k.current, k.stamps = config, stamps
	return nil
}

func (k *keyring) look() (stamps [3]stamp, err error) {
	for i, name := range []string{k.files.Certificate, k.files.Key, k.files.ClientCA} {
		info, err := os.Stat(name)
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{info}
	}
	return stamps, nil
}

func unchanged(before, after [3]stamp) bool {
	for i, old := range before {
		if !old.equals(after[i]) {
			return false
		}
	}
	return true
}

func (f TLSFiles) load() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", f.Certificate, f.Key, err)
	}
	pem, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it", f.ClientCA)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2"},
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    authorities,
		// A resumed session would be one that the authorities of today have not verified.
		SessionTicketsDisabled: true,
	}, nil
}
