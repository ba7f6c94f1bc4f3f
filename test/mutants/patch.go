package mutants

import (
	"fmt"
	"strings"
)

// A change is what a patch does to one file.
type change struct {
	path  string // from the module's root, with slashes
	hunks []hunk
}

// A hunk is lines that a file has, and what stands there instead. They are looked for in the whole file, so that a patch
// outlives what changes around them.
type hunk struct{ before, after string }

// parse reads a patch as `diff -u` writes it.
func parse(patch string) (changes []change, err error) {
	var file *change
	for line := range strings.Lines(patch) {
		path, named := strings.CutPrefix(line, "+++ b/")
		switch {
		case strings.HasPrefix(line, "--- a/"):
		case named:
			changes = append(changes, change{path: strings.TrimSpace(path)})
			file = &changes[len(changes)-1]
		case file == nil:
			return nil, fmt.Errorf("a patch begins with %q", line)
		case strings.HasPrefix(line, "@@"):
			file.hunks = append(file.hunks, hunk{})
		default:
			if err := file.read(line); err != nil {
				return nil, err
			}
		}
	}
	return changes, nil
}

// read reads a line of a hunk.
func (c *change) read(line string) error {
	if len(c.hunks) == 0 {
		return fmt.Errorf("%s: %q stands before all hunks", c.path, line)
	}
	last := &c.hunks[len(c.hunks)-1]
	switch mark, text := line[0], line[1:]; mark {
	case ' ':
		last.before += text
		last.after += text
	case '-':
		last.before += text
	case '+':
		last.after += text
	default:
		return fmt.Errorf("%s: %q is no line of a hunk", c.path, line)
	}
	return nil
}

// apply fails unless each hunk is found once and changes something.
func (c *change) apply(text string) (string, error) {
	for i, h := range c.hunks {
		if found := strings.Count(text, h.before); found != 1 || h.before == h.after {
			return "", fmt.Errorf("%s: hunk %d is found %d times:\n%s", c.path, i+1, found, h.before)
		}
		text = strings.Replace(text, h.before, h.after, 1)
	}
	return text, nil
}
