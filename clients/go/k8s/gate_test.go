package k8s

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// through answers for one request through a gate, after the gate.
func through(t *testing.T, gate *Gate, method string) error {
	t.Helper()
	passed := roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: http.StatusOK}, nil })
	request := httptest.NewRequest(method, "https://api/", http.NoBody)
	_, err := (&gatedTransport{passed, gate}).RoundTrip(request) //nolint:bodyclose // there is none
	return err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func wantThrough(t *testing.T, gate *Gate, method string, want error) {
	t.Helper()
	if err := through(t, gate, method); !errors.Is(err, want) {
		t.Errorf("%s: %v, not %v", method, err, want)
	}
}

func TestAGateLetsWritesPassOnlyUntilTheMarginOfATerm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		gate := &Gate{}
		wantThrough(t, gate, http.MethodPatch, ErrNotLeading)
		s := newScene(10 * time.Second)
		options := s.options()
		options.Gate = gate
		acted, err := begin(s, options, s.stop)
		must(t, err)
		wantThrough(t, gate, http.MethodPatch, nil)
		s.at(9*time.Second - tick)
		wantThrough(t, gate, http.MethodPatch, nil)
		s.at(9 * time.Second)
		wantThrough(t, gate, http.MethodPatch, ErrNotLeading)
		wantThrough(t, gate, http.MethodGet, nil)
		ends(t, s, acted)
		wantThrough(t, gate, http.MethodPatch, ErrNotLeading)
	})
}

func TestAGateIsClosedWhenATermIsResigned(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newScene(10 * time.Second)
		options := s.options()
		options.Gate = &Gate{}
		acted, err := begin(s, options, s.stop)
		must(t, err)
		ends(t, s, acted)
		wantThrough(t, options.Gate, http.MethodDelete, ErrNotLeading)
	})
}

func TestNothingLeavesThroughAConnectionOnceTheTermIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go func() {
			for buffer := make([]byte, 8); ; {
				if _, err := theirs.Read(buffer); err != nil {
					return
				}
			}
		}()
		gate := &Gate{}
		config := gate.Guard(&rest.Config{Dial: func(context.Context, string, string) (net.Conn, error) { return ours, nil }})
		connection, err := config.Dial(t.Context(), "tcp", "api:443")
		must(t, err)
		write := func(want error) {
			t.Helper()
			if _, err := connection.Write([]byte("x")); !errors.Is(err, want) {
				t.Errorf("a write ends with %v, not %v", err, want)
			}
		}
		write(nil) // a candidate reads, too
		s := newScene(10 * time.Second)
		options := s.options()
		options.Gate = gate
		acted, err := begin(s, options, s.stop)
		must(t, err)
		write(nil)
		s.at(9 * time.Second)
		write(ErrNotLeading)
		ends(t, s, acted)
	})
}
