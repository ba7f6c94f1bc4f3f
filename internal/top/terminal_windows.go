package top

import "golang.org/x/sys/windows"

// size is 0 if the file is no console.
func (s *screen) size() (width, height int) {
	var shown windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(s.file.Fd()), &shown); err != nil {
		return 0, 0
	}
	return int(shown.Window.Right-shown.Window.Left) + 1, int(shown.Window.Bottom-shown.Window.Top) + 1
}
