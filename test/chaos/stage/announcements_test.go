package stage

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestAnnouncementsAreTakenFromWholeLines(t *testing.T) {
	said := newAnnouncements()
	for _, piece := range []string{"listening", " on unix:///a\nstart", "ed\nlistening on 127.0.0.1:7\nlistening on half"} {
		if _, err := io.WriteString(said, piece); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := said.await(2, time.Minute, nil)
	if got := strings.Join(lines, " "); err != nil || got != "unix:///a 127.0.0.1:7" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAProgramThatEndsAnnouncesNothingMore(t *testing.T) {
	exited := make(chan struct{})
	close(exited)
	if lines, err := newAnnouncements().await(1, time.Minute, exited); err == nil {
		t.Errorf("%q", lines)
	}
}
