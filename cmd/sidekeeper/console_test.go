package main

import (
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// posted is what is answered to a call over HTTP with JSON.
func posted(t *testing.T, url, token, body string) (code int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestTheConsoleAnswersWhoeverHasItsToken(t *testing.T) {
	t.Parallel()
	s, welcome := develop(t, "--admin-listen=127.0.0.1:0")
	console := start(t, "", "console", "--address", s.address, "--admin", said(t, welcome, `top --admin (\S+)`))
	origin, token, _ := strings.Cut(receive(t, console.lines), "/#token=")
	const create, list = "/api/sidekeeper.config.v1.ConfigService/Put", "/api/sidekeeper.config.v1.ConfigService/List"
	if code, answer := posted(t, origin+create, token, `{"key":"shop/limit"}`); code != http.StatusForbidden {
		t.Errorf("what the page does not call: %d %s", code, answer)
	}
	if _, problem, code := output(t, "config", "put", "shop/limit", "250", "--address", s.address); code != 0 {
		t.Errorf("exit %d: %s", code, problem)
	}
	if code, answer := posted(t, origin+list, token, `{}`); !strings.Contains(answer, "shop/limit") {
		t.Errorf("with the token: %d %s", code, answer)
	}
	if code, answer := posted(t, origin+"/state", token, `{}`); !strings.Contains(answer, `"reachable":true`) {
		t.Errorf("how the sidecar does: %d %s", code, answer)
	}
	const revoke = "/api/sidekeeper.lock.v1.LockService/Revoke"
	for body, want := range map[string]int{`{"name":"orders"}`: http.StatusBadRequest, `{"name":"orders","reason":"a test"}`: http.StatusOK} {
		if code, answer := posted(t, origin+revoke, token, body); code != want {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	const put = "/api/sidekeeper.schedule.v1.ScheduleService/Put"
	for body, want := range map[string]int{
		`{"name":"reports","cron":"@daily","paused":true}`: http.StatusForbidden, `{"name":"reports"}`: http.StatusForbidden,
		`{"name":"reports","paused":true}`: http.StatusNotFound,
	} {
		if code, answer := posted(t, origin+put, token, body); code != want {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	for _, path := range []string{list, "/about", "/state", "/overview", "/waits", "/api/"} {
		if code, answer := posted(t, origin+path, "not-the-token", `{}`); code != http.StatusUnauthorized {
			t.Errorf("%s without the token: %d %s", path, code, answer)
		}
	}
	if code, answer := posted(t, origin+"/api/sidekeeper.dev.v1.DevService/ExpireLease", token, `{}`); code != http.StatusNotFound {
		t.Errorf("what the page does not need: %d %s", code, answer)
	}
	s.signal(os.Interrupt)
	s.ends()
	if code, answer := posted(t, origin+list, token, `{}`); code != http.StatusServiceUnavailable {
		t.Errorf("without a sidecar: %d %s", code, answer)
	}
	console.signal(syscall.SIGTERM)
	console.want(t, 0)
}

func TestTheConsoleIsForThisMachineOnly(t *testing.T) {
	t.Parallel()
	s, _ := develop(t)
	defer s.ends()
	defer s.signal(os.Interrupt)
	for _, listen := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80", "nonsense"} {
		_, problem, code := output(t, "console", "--address", s.address, "--listen", listen)
		if code != exit.Usage || !strings.Contains(problem, "is not a loopback host:port") {
			t.Errorf("%s: exit %d: %s", listen, code, problem)
		}
	}
	_, problem, code := output(t, "console", "--address", "192.0.2.1:7181")
	if code != exit.Usage || !strings.Contains(problem, "TLS") {
		t.Errorf("exit %d: %s", code, problem)
	}
	_, problem, code = output(t, "console", "--operator-address", "unix:///nowhere/at/all.sock")
	if code != exit.Unreachable {
		t.Errorf("exit %d: %s", code, problem)
	}
}

func TestHTTPIsServedToAllWhereAllAreOperatorsOnly(t *testing.T) {
	t.Parallel()
	s, welcome := develop(t, "--http-listen=127.0.0.1:0")
	defer s.ends()
	defer s.signal(os.Interrupt)
	origin := "http://" + said(t, welcome, `HTTP: +(127\.0\.0\.1:\d+),`)
	if code, answer := posted(t, origin+"/sidekeeper.lock.v1.LockService/Get", "", `{"name":"orders"}`); code != http.StatusOK {
		t.Errorf("%d %s", code, answer)
	}
	_, problem, code := output(t, "serve", "--zookeeper", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--operator-listen", "",
		"--http-listen", "127.0.0.1:0")
	if code != exit.Usage || !strings.Contains(problem, "needs --http-token-file on loopback") {
		t.Errorf("exit %d: %s", code, problem)
	}
	_, problem, code = output(t, "serve", "--zookeeper", "127.0.0.1:1", "--http-token-file", "token")
	if code != exit.Usage || !strings.Contains(problem, "needs --http-listen") {
		t.Errorf("exit %d: %s", code, problem)
	}
}
