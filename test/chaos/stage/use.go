package stage

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
)

// Use is what a sidecar's process uses.
type Use struct {
	Started     int // the number of the process
	Goroutines  int
	Descriptors int
}

var (
	goroutinesLine  = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)
	descriptorsLine = regexp.MustCompile(`(?m)^process_open_fds (\d+)`)
)

// Use asks the sidecar what it uses.
func (h *Host) Use(ctx context.Context) (Use, error) {
	h.mu.Lock()
	address, started := h.metrics, h.sidecar.ID()
	h.mu.Unlock()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return Use{}, err
	}
	request.Close = true // or the question would be one of the descriptors it asks about, now and then
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Use{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Use{}, err
	}
	goroutines, descriptors := number(goroutinesLine, text), number(descriptorsLine, text)
	if goroutines == 0 || descriptors == 0 {
		return Use{}, fmt.Errorf("%s does not say what it uses", h.Target())
	}
	return Use{Started: started, Goroutines: goroutines, Descriptors: descriptors}, nil
}

// number is what a line's only group has matched, 0 if there is no such line.
func number(line *regexp.Regexp, text []byte) int {
	groups := line.FindSubmatch(text)
	if groups == nil {
		return 0
	}
	found, _ := strconv.Atoi(string(groups[1])) // digits
	return found
}
