package server_test

import (
	"net/http"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/server"
)

// TestMetricsOnLoopbackAnswerOnlyWhoAsksForThisMachine has a web page whose name was made to point here ask for them.
func TestMetricsOnLoopbackAnswerOnlyWhoAsksForThisMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, host string
		want         int
	}{
		{"127.0.0.1:0", "localhost:9464", http.StatusOK},
		{"127.0.0.1:0", "127.0.0.1", http.StatusOK},
		{"127.0.0.1:0", "attacker.example:9464", http.StatusMisdirectedRequest},
		{"localhost:0", "attacker.example", http.StatusMisdirectedRequest},
		{"0.0.0.0:0", "10.1.2.3:9464", http.StatusOK},
		{"0.0.0.0:0", "shop.prod.svc:9464", http.StatusOK},
	} {
		p := newProbe(t, func(o *server.Options) { o.MetricsListen = c.listen })
		request, err := http.NewRequestWithContext(within(t), http.MethodGet, "http://"+p.server.MetricsAddress()+"/metrics", http.NoBody)
		must(t, err)
		request.Host = c.host
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		must(t, response.Body.Close())
		same(t, c.listen+" as "+c.host, response.StatusCode, c.want)
	}
	http.DefaultClient.CloseIdleConnections()
}
