package console

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// answered is what the console answers to a request for a file.
func answered(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	handler, err := Options{}.handler("token", newWatcher(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	request.Host = "localhost:1"
	handler.ServeHTTP(answer, request)
	return answer
}

func TestThePageRunsNothingButItsOwnScripts(t *testing.T) {
	t.Parallel()
	answer := answered(t, "/")
	for _, rule := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(answer.Header().Get("Content-Security-Policy"), rule) {
			t.Errorf("the page has no %s", rule)
		}
	}
	for _, file := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(answer.Body.String(), -1) {
		if code := answered(t, "/"+file[1]).Code; code != http.StatusOK {
			t.Errorf("%s: status %d", file[1], code)
		}
	}
}

func TestWordsOfOthersNeverBecomeMarkup(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(page, "page", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(page, path)
		for _, never := range []string{
			"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "onclick=", "style=\"", "https://", "http://",
		} {
			if strings.Contains(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), never) {
				t.Errorf("%s has %s", path, never)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
