package stage

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"
)

// resolver asks this name server alone.
func resolver(n *NameServer) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

func TestANameServerKnowsTheServersAndNoOthersUnlessItHangs(t *testing.T) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &NameServer{conn: conn, closed: make(chan struct{})}
	go n.serve()
	t.Cleanup(n.close)
	if found, err := resolver(n).LookupHost(t.Context(), "server-2"+domain); err != nil || !slices.Equal(found, []string{"127.0.0.1"}) {
		t.Errorf("found %v, %v", found, err)
	}
	var failure *net.DNSError
	if _, err := resolver(n).LookupHost(t.Context(), "server-2.elsewhere."); !errors.As(err, &failure) || !failure.IsNotFound {
		t.Errorf("elsewhere: %v", err)
	}
	n.Hang()
	waiting, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if found, err := resolver(n).LookupHost(waiting, "server-2"+domain); !errors.As(err, &failure) || !failure.IsTimeout {
		t.Errorf("it hangs: found %v, %v", found, err)
	}
}
