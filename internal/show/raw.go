package show

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Raw writes others' bytes as they are, but to a terminal with escapes for what is not printable: it may be what the terminal takes for
// commands.
func Raw(to io.Writer, value []byte) error {
	if isTerminal(to) {
		value = []byte(Legible(value))
	}
	_, err := to.Write(value)
	return err
}

// isTerminal says whether a terminal, or another device, reads what is written.
func isTerminal(to io.Writer) bool {
	file, ok := to.(*os.File)
	if !ok {
		return false
	}
	status, err := file.Stat()
	return err == nil && status.Mode()&os.ModeCharDevice != 0
}

// Legible is text with escapes, as in strings of Go, for all but printable characters, newlines and tabs.
func Legible(value []byte) string {
	var text strings.Builder
	for len(value) > 0 {
		letter, size := utf8.DecodeRune(value)
		switch plain := value[:size]; {
		case letter == utf8.RuneError && size == 1:
			text.WriteString(`\x` + strconv.FormatInt(int64(plain[0]), 16))
		case letter == '\n', letter == '\t', unicode.IsPrint(letter):
			text.Write(plain)
		default:
			text.WriteString(strings.Trim(strconv.QuoteRune(letter), "'"))
		}
		value = value[size:]
	}
	return text.String()
}
