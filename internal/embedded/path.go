package embedded

import (
	"strings"
	"unicode/utf8"
)

// validPath refuses what ZooKeeper refuses as a path.
func validPath(path string) error {
	if path == "/" {
		return nil
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return codeBadArguments
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsFunc(segment, forbidden) {
			return codeBadArguments
		}
	}
	return nil
}

// forbidden names the characters that no path may hold. Beyond the 16-bit plane ZooKeeper sees surrogates, which it
// refuses too.
func forbidden(r rune) bool {
	switch {
	case r == utf8.RuneError:
		return true
	case r <= 0x1f, r >= 0x7f && r <= 0x9f:
		return true
	case r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
		return true
	}
	return false
}

// splitPath gives the parent's path, which is "" for the root, and the last segment.
func splitPath(path string) (parent, name string) {
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 {
		return "", path
	}
	return path[:slash], path[slash+1:]
}

// parentOf gives the path of the parent of a path that is about to change, before the whole of it is checked: ZooKeeper
// misses the parent first and faults the path after.
func parentOf(path string) (string, error) {
	if path == missing {
		return "", codeMarshalling
	}
	if !strings.Contains(path, "/") || strings.IndexByte(path, 0) >= 0 {
		return "", codeBadArguments
	}
	parent, _ := splitPath(path)
	return parent, nil
}

// watched is the path under which watches of a node lie: the root's parent path is empty.
func watched(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// special nodes are part of every ensemble and cannot be deleted.
func special(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	}
	return false
}
