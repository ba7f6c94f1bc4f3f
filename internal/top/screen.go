package top

import (
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/service"
)

// A screen is a terminal that is drawn anew in place, on a page of its own, so that what stood there comes back.
type screen struct {
	file     *os.File
	keyboard *os.File    // where keys are read; nil if that is no terminal
	cooked   *term.State // of the keyboard before
	state    *service.State
	skipped  int // how many rows of each table that is too long are above
	page     int // how many rows of the longest table are shown
	shown    []string

	arrangement arrangement
}

// What terminals of all kinds understand.
const (
	enterPage  = "\x1b[?1049h\x1b[?25l" // and hide the cursor
	leavePage  = "\x1b[?25h\x1b[?1049l"
	toTheTop   = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// enter begins to draw, and has single keys read.
func (s *screen) enter() {
	if s.keyboard != nil {
		s.cooked, _ = term.MakeRaw(int(s.keyboard.Fd())) // otherwise there are whole lines alone
	}
	s.write(enterPage)
}

func (s *screen) leave() {
	s.write(leavePage)
	if s.cooked != nil {
		_ = term.Restore(int(s.keyboard.Fd()), s.cooked) // a terminal that has gone away cannot be told
	}
}

// size is 0 if the file is no terminal.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.file.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

func (s *screen) show(state *service.State) {
	s.state = state
	width, height := s.size()
	v := newView(state, width)
	v.state, v.arrangement = s.arrangement.of(state), s.arrangement
	v.skip = s.skipped
	s.shown = v.lines(height)
	s.skipped, s.page = min(s.skipped, v.last), v.page
	s.draw(s.shown)
}

// press does what a key is for, and says whether to go on.
func (s *screen) press(typed string) bool {
	changed, is := s.arrangement.press(typed)
	s.arrangement = changed
	switch {
	case is:
		s.scroll(0)
	case keys[typed] == quit:
		return false
	case keys[typed] != 0:
		s.scroll(keys[typed])
	}
	return true
}

// scroll moves the rows of tables that are too long.
func (s *screen) scroll(by key) {
	steps := map[key]int{up: -1, down: 1, pageUp: -s.page, pageDown: s.page}
	s.skipped = max(0, s.skipped+steps[by])
	if s.state != nil {
		s.show(s.state)
	}
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
