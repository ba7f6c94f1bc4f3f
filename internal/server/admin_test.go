package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/service"
)

// answersTo asks the admin listener, and returns the status and what was answered.
func (p *probe) answersTo(path string, headers map[string]string) (int, http.Header, string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(within(p.t), http.MethodGet, p.page()+path, http.NoBody)
	must(p.t, err)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	request.Host = headers["Host"]
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	must(p.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(p.t, err)
	return response.StatusCode, response.Header, string(body)
}

func newAdminProbe(t *testing.T) *probe {
	t.Helper()
	return newProbe(t, func(o *server.Options) { o.AdminListen = "127.0.0.1:0" })
}

func TestPagesFromElsewhereCannotAskTheAdminListener(t *testing.T) {
	t.Parallel()
	p := newAdminProbe(t)
	for _, asked := range []struct {
		headers map[string]string
		want    int
	}{
		{nil, http.StatusOK},
		{map[string]string{"Host": "localhost:7182"}, http.StatusOK},
		{map[string]string{"Host": "[::1]"}, http.StatusOK},
		{map[string]string{"Sec-Fetch-Site": "same-origin"}, http.StatusOK},
		{map[string]string{"Sec-Fetch-Site": "none"}, http.StatusOK},
		{map[string]string{"Host": "rebound.example:7182"}, http.StatusMisdirectedRequest},
		{map[string]string{"Host": "127.0.0.1.example"}, http.StatusMisdirectedRequest},
		{map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		{map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
	} {
		for _, path := range []string{"/", "/state", "/debug/pprof/"} {
			status, _, _ := p.answersTo(path, asked.headers)
			same(t, path+" with "+strings.Join(valuesOf(asked.headers), " "), status, asked.want)
		}
	}
}

func valuesOf(headers map[string]string) (values []string) {
	for name, value := range headers {
		values = append(values, name+": "+value)
	}
	return values
}

func TestThePageRunsNothingButItsOwnScriptAndNeedsNoNetwork(t *testing.T) {
	t.Parallel()
	p := newAdminProbe(t)
	status, header, page := p.answersTo("/", nil)
	same(t, "page", status, http.StatusOK)
	policy := header.Get("Content-Security-Policy")
	for _, rule := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
		same(t, rule, strings.Contains(policy, rule), true)
	}
	for _, file := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		status, _, _ := p.answersTo("/"+strings.TrimPrefix(file[1], "/"), nil)
		same(t, file[1], status, http.StatusOK)
	}
	must(t, fs.WalkDir(os.DirFS("."), "panel", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, never := range []string{
			"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "onclick=", "style=\"", "https://",
		} {
			if strings.Contains(string(text), never) {
				t.Errorf("%s has %s", path, never)
			}
		}
		return err
	}))
}

func TestWordsOfCallersAreDataForThePage(t *testing.T) {
	t.Parallel()
	p := newAdminProbe(t)
	p.setStock(service.State{Leases: []service.LeaseState{{Owner: "</script><script>alert(1)</script>\n\ndata: {}"}}})
	_, header, text := p.answersTo("/state", nil)
	same(t, "type", header.Get("Content-Type"), "application/json")
	same(t, "markup", strings.ContainsAny(text, "<>"), false)
	same(t, "lines", strings.Count(text, "\n"), 1)
	var state service.State
	must(t, json.Unmarshal([]byte(text), &state))
	same(t, "owner", state.Leases[0].Owner, "</script><script>alert(1)</script>\n\ndata: {}")
}

// A looker reads /events.
type looker struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (p *probe) look(ctx context.Context) *looker {
	p.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.page()+"/events", http.NoBody)
	must(p.t, err)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	must(p.t, err)
	p.t.Cleanup(func() { _ = response.Body.Close() })
	same(p.t, "status", response.StatusCode, http.StatusOK)
	return &looker{p.t, bufio.NewScanner(response.Body)}
}

// sees reads states until one has so many leases.
func (l *looker) sees(leases int) {
	l.t.Helper()
	for l.lines.Scan() {
		text, ok := strings.CutPrefix(l.lines.Text(), "data: ")
		var state service.State
		if ok && json.Unmarshal([]byte(text), &state) == nil && state.Counts.Leases == leases {
			return
		}
	}
	l.t.Fatalf("no state with %d leases: %v", leases, l.lines.Err())
}

func TestWhoDoesNotReadKeepsNobodyElseFromSeeing(t *testing.T) {
	t.Parallel()
	p := newAdminProbe(t)
	large := make([]service.LeaseState, 2000)
	for i := range large {
		large[i].Owner = strings.Repeat("x", 128)
	}
	for range 3 { // none of them ever reads
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.page(), "http://"))
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = conn.Write([]byte("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		must(t, err)
	}
	p.setStock(service.State{Leases: large, Counts: service.Counts{Leases: 1}})
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	reader := p.look(ctx)
	reader.lines.Buffer(nil, 1<<20)
	reader.sees(1)
	p.setStock(service.State{Counts: service.Counts{Leases: 2}})
	reader.sees(2)
}

func TestNothingIsDoneWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	p := newAdminProbe(t)
	same(t, "looks before", p.looks(), 0)
	ctx, cancel := context.WithCancel(within(t))
	p.look(ctx).sees(0)
	same(t, "looks while somebody does", p.looks() > 0, true)
	cancel()
	for server.Lookers(p.server) > 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-within(t).Done():
			t.Fatal("the looks go on")
		}
	}
}

func TestOnlySoManyMayLookAtOnce(t *testing.T) {
	t.Parallel()
	p := newAdminProbe(t)
	for range 32 {
		p.look(within(t)).sees(0)
	}
	status, _, _ := p.answersTo("/events", nil)
	same(t, "one more", status, http.StatusServiceUnavailable)
}

func TestTheAdminListenerMayBeASocketOfItsOwnersAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := newProbe(t, func(o *server.Options) { o.AdminListen = "unix://" + folder + "/admin" })
	same(t, "address", p.server.AdminAddress(), "unix://"+folder+"/admin")
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", folder+"/admin")
	}}
	request, err := http.NewRequestWithContext(within(t), http.MethodGet, "http://whatever/state", http.NoBody)
	must(t, err)
	response, err := (&http.Client{Transport: transport}).Do(request)
	must(t, err)
	must(t, response.Body.Close())
	same(t, "status", response.StatusCode, http.StatusOK)
	_, err = opens(server.Options{AdminListen: "192.0.2.1:0"})
	same(t, "another address", strings.HasPrefix(err.Error(), "--admin-listen 192.0.2.1:0: "), true)
}
