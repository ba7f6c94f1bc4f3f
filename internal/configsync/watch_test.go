package configsync

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func TestACommandIsToldWhatHasChangedSinceItLastBegan(t *testing.T) {
	w := &Watch{changed: map[string]string{}}
	view := map[string]*sidekeeper.Entry{}
	put := func(key, value string) event {
		view[key] = &sidekeeper.Entry{Key: key, Value: []byte(value)}
		return event{name: eventPut, key: key, entry: view[key]}
	}
	about := func() string {
		next := w.nextRun()
		var words []string
		for _, variable := range next.environment {
			words = append(words, strings.TrimPrefix(variable, "SIDEKEEPER_CONFIG_"))
		}
		texts := regexp.MustCompile(`"text":"[^"]*"`).FindAllString(string(next.stdin), -1)
		return strings.Join(append(words, texts...), " ")
	}
	for _, c := range []struct {
		events func() []event
		news   bool
		about  string
	}{
		{func() []event { return []event{{name: eventSynced}} }, true, `CHANGES=0 KEY= EVENT=`},
		{func() []event { return []event{put("b", "1")} }, true, `CHANGES=1 KEY=b EVENT=put "text":"1"`},
		{
			func() []event { return []event{put("b", "2"), put("a", "1"), put("b", "3")} },
			true, `CHANGES=2 KEY= EVENT= "text":"1" "text":"3"`,
		},
		{
			func() []event {
				delete(view, "b")
				return []event{{name: eventPut, key: "b"}, {name: eventDeleted, key: "b"}}
			}, true, `CHANGES=1 KEY=b EVENT=deleted "text":"1"`,
		},
		{
			func() []event { return []event{{name: eventStale}, {name: eventFresh}} },
			false, `CHANGES=0 KEY= EVENT= "text":"1"`,
		},
	} {
		if news := w.note(view, c.events()); news != c.news {
			t.Errorf("%s: news %v", c.about, news)
		}
		if got := about(); got != c.about {
			t.Errorf("%s, want %s", got, c.about)
		}
	}
}
