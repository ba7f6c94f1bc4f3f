package show

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
)

// LogWriter is where a log's lines go, with characters escaped, as JSON does, that change the direction of text: a name that holds them
// would show the rest of its line in another order than it has.
func LogWriter(to io.Writer) io.Writer { return logWriter{to} }

type logWriter struct{ to io.Writer }

func (w logWriter) Write(line []byte) (int, error) {
	if isLatin(line) || !bytes.ContainsFunc(line, turnsText) {
		return w.to.Write(line)
	}
	var escaped bytes.Buffer
	for _, r := range string(line) {
		if turnsText(r) {
			fmt.Fprintf(&escaped, `\u%04x`, r)
		} else {
			escaped.WriteRune(r)
		}
	}
	if n, err := w.to.Write(escaped.Bytes()); err != nil {
		return min(n, len(line)), err
	}
	return len(line), nil
}

// isLatin says quickly of most lines that no character of them is beyond Latin-1, whose bytes in UTF-8 begin with less.
func isLatin(line []byte) bool {
	for _, each := range line {
		if each > '\u00ff'>>6|0xc0 {
			return false
		}
	}
	return true
}

func turnsText(r rune) bool { return r > unicode.MaxLatin1 && unicode.Is(unicode.Bidi_Control, r) }
