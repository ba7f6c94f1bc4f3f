package expect

import (
	"context"
	"net/http"
	"net/http/httptest"
)

// Scrape is what a page of metrics shows.
func Scrape(metrics http.Handler) string {
	page := httptest.NewRecorder()
	metrics.ServeHTTP(page, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", http.NoBody))
	return page.Body.String()
}
