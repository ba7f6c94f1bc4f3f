package fence

import (
	"errors"
	"net/http"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// Transport sends along the tickets of each request's context: see sidekeeper.Tickets.
type Transport struct {
	Base http.RoundTripper // what sends; nil, http.DefaultTransport
}

// RoundTrip sends the request.
func (t Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if tickets := sidekeeper.Tickets(request.Context()); len(tickets) > 0 {
		request = request.Clone(request.Context())
		request.Header.Add(Header, Format(tickets)) //nolint:canonicalheader // as gRPC writes it
	}
	return base.RoundTrip(request)
}

// Handler refuses requests that do not pass the gate, with the Refusal as text, and has next answer the others. With the request's context
// the tickets guard what is written through a sidekeeper.Client, and go along with further calls.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		ctx, values := request.Context(), request.Header.Values(Header) //nolint:canonicalheader // as gRPC writes it
		tickets, err := g.Admit(ctx, request.Method+" "+request.URL.Path, values)
		if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
			http.Error(w, refusal.Error(), refusal.HTTPStatus())
			return
		}
		next.ServeHTTP(w, request.WithContext(guarded(ctx, tickets)))
	})
}
