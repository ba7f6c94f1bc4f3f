package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestTheLogNamesEachCauseOfRefusedConnectionsOnceAMinute(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	tell := misled(zap.New(core))
	for range 3 {
		tell(&net.TCPAddr{}, errors.New("no certificate"))
		tell(&net.TCPAddr{}, fmt.Errorf("handshake: %w", x509.UnknownAuthorityError{}))
		tell(&net.TCPAddr{}, errBeginsWithoutTLS)
	}
	same(t, "lines about three causes", logged.Len(), 3)
	for n := range 100 {
		tell(&net.TCPAddr{}, fmt.Errorf("a text of the caller's choice: %d", n))
	}
	same(t, "lines about many causes", logged.Len(), mostCauses+1)
}
