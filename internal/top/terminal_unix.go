//go:build !windows

package top

import "golang.org/x/sys/unix"

// size is 0 if the file is no terminal.
func (s *screen) size() (width, height int) {
	size, err := unix.IoctlGetWinsize(int(s.file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}
