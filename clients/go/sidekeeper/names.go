package sidekeeper

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
)

// NameOf gives the name that stands for a text: of a lock, an election or anything else that has a name.
//
// A text that is a name stays as it is, so that the name of a name is itself. Otherwise each of its segments becomes one as SegmentOf says, and
// an empty one `_-`. A text whose name would be longer than 200 bytes is cut as a long segment is. An empty text stays empty, which no sidecar
// takes. The clients of all languages give the same names.
//
// Two texts have the same name only if one of them is itself a name with `_-` or `_.` in it, or if both are cut and 96 bits of their SHA-256
// are the same.
func NameOf(text string) string {
	if text == "" {
		return ""
	}
	segments := strings.Split(text, "/")
	for i, part := range segments {
		if i == 0 || part != "zookeeper" {
			segments[i] = cmp.Or(SegmentOf(part), "_-")
		}
	}
	if name := strings.Join(segments, "/"); len(name) <= 200 {
		return name
	}
	return cutName(text)
}

// SegmentOf gives the one segment that stands for a text: the name of a member or an item, or the key of work that is done once.
//
// A text that is a segment stays as it is. Otherwise the segment is `_-` and the text, in which `__` is an underscore and `_3a` a byte that no
// segment has. A text whose segment would be longer than 64 bytes becomes `_.`, its first 37 bytes with `_` for those that no segment has, `-`
// and the first 24 hexadecimal digits of its SHA-256. An empty text stays empty.
func SegmentOf(text string) string {
	reserved := text == "." || text == ".." || text == "zookeeper"
	if text == "" || len(text) <= 64 && !reserved && !strings.ContainsFunc(text, isStrange) {
		return text
	}
	escaped := []byte("_-")
	for _, b := range []byte(text) {
		switch {
		case b == '_':
			escaped = append(escaped, "__"...)
		case isStrange(rune(b)):
			escaped = fmt.Appendf(escaped, "_%02x", b)
		default:
			escaped = append(escaped, b)
		}
		if len(escaped) > 64 {
			return cutName(text)
		}
	}
	return string(escaped)
}

func cutName(text string) string {
	shown := []byte(text[:min(len(text), 37)])
	for i, b := range shown {
		if isStrange(rune(b)) {
			shown[i] = '_'
		}
	}
	hash := sha256.Sum256([]byte(text))
	return fmt.Sprintf("_.%s-%x", shown, hash[:12])
}

// isStrange says of a byte that no segment has it.
func isStrange(r rune) bool {
	switch {
	case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
		return false
	}
	return true
}
