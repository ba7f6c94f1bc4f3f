package top

import (
	"os"
	"strings"

	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/service"
)

// A screen is a terminal that is drawn anew in place, on a page of its own, so that what stood there comes back.
type screen struct {
	file  *os.File
	shown []string
}

// What terminals of all kinds understand.
const (
	enterPage  = "\x1b[?1049h\x1b[?25l" // and hide the cursor
	leavePage  = "\x1b[?25h\x1b[?1049l"
	toTheTop   = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

func (s *screen) enter() { s.write(enterPage) }
func (s *screen) leave() { s.write(leavePage) }

func (s *screen) show(state *service.State) {
	width, height := s.size()
	s.shown = newView(state, width).lines(height)
	s.draw(s.shown)
}

// note shows what was seen last, below a line of news.
func (s *screen) note(news string) {
	width, _ := s.size()
	lines := append([]string{paint(levelBad, clip(show.Printable(news), width))}, s.shown[min(1, len(s.shown)):]...)
	s.draw(lines)
}

func (s *screen) draw(lines []string) {
	s.write(toTheTop + strings.Join(lines, clearLine+"\r\n") + clearLine + clearBelow)
}

func (s *screen) write(text string) {
	_, _ = s.file.WriteString(text) // a terminal that has gone away cannot be told
}
