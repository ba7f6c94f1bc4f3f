package documents

import (
	"regexp"
	"strings"
	"testing"
)

// A block is what stands between two fences.
type block struct {
	kind  string
	first int // number of its first line, from 0
	lines []string
	file  string // as which the reader saves it; empty for none
}

// A step is one command of a document, and what the document shows below it.
type step struct {
	terminal string // "" is the one without a name
	command  string
	line     int // of the command, from 0
	shown    []string
	below    int // number of the first line below the command
	silent   bool
}

const (
	interrupt = "^C"
	goesOn    = "…"
)

var (
	fence    = regexp.MustCompile("^ *```(.*)$")
	saving   = regexp.MustCompile("^Save this as `([^`]+)`:$")
	indented = regexp.MustCompile(`^(    |\t)\s*\S`)
	prompt   = regexp.MustCompile(`^([a-z][a-z0-9-]*)?\$ (.*)$`)
	heredoc  = regexp.MustCompile(`<<'?([A-Z]+)'?`)
)

// blocksOf are the blocks of a document. A block that is indented says nothing of its kind, so there must be none.
func blocksOf(t *testing.T, document string, lines []string) []block {
	t.Helper()
	var blocks []block
	inside := false
	for i, line := range lines {
		match := fence.FindStringSubmatch(line)
		switch {
		case match != nil && !inside:
			blocks = append(blocks, block{kind: strings.TrimSpace(match[1]), first: i + 1})
			if i > 1 && saving.MatchString(lines[i-2]) {
				blocks[len(blocks)-1].file = saving.FindStringSubmatch(lines[i-2])[1]
			}
			inside = true
		case match != nil:
			inside = false
		case inside:
			last := &blocks[len(blocks)-1]
			last.lines = append(last.lines, line)
		case i > 0 && strings.TrimSpace(lines[i-1]) == "" && indented.MatchString(line):
			t.Errorf("%s:%d: a block without fences says nothing of its kind:\n%s", document, i+1, line)
		}
	}
	if inside {
		t.Errorf("%s: a block does not end", document)
	}
	return blocks
}

// steps are the commands of a block that are to be run, or the one that saves it as a file.
func (b block) steps(t *testing.T, document string) []step {
	t.Helper()
	if b.file != "" {
		save := "cat >" + b.file + " <<'SAVED'\n" + strings.Join(b.lines, "\n") + "\nSAVED"
		return []step{{command: save, line: b.first, below: b.first + len(b.lines), silent: true}}
	}
	if b.kind != "sh" && b.kind != "console" {
		return nil
	}
	var found []step
	for i := 0; i < len(b.lines); i++ {
		line, terminal := b.lines[i], ""
		if b.kind == "console" {
			match := prompt.FindStringSubmatch(line)
			if match == nil {
				if len(found) == 0 {
					t.Errorf("%s:%d: no prompt stands before %s", document, b.first+i+1, line)
					return nil
				}
				last := &found[len(found)-1]
				last.shown = append(last.shown, line)
				continue
			}
			terminal, line = match[1], match[2]
		} else if bare := strings.TrimSpace(line); bare == "" || strings.HasPrefix(bare, "#") {
			continue
		}
		command, last := whole(b.lines, i, line)
		found = append(found, step{
			terminal: terminal, command: command, line: b.first + i, below: b.first + last + 1, silent: b.kind == "sh",
		})
		i = last
	}
	return found
}

// whole is a command that begins in a line and goes on in those below it, and the number of its last line.
func whole(lines []string, i int, command string) (string, int) {
	for strings.HasSuffix(command, `\`) && i+1 < len(lines) {
		i++
		command += "\n" + lines[i]
	}
	if match := heredoc.FindStringSubmatch(command); match != nil {
		for i+1 < len(lines) {
			i++
			command += "\n" + lines[i]
			if lines[i] == match[1] {
				break
			}
		}
	}
	return command, i
}
