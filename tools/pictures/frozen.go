package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A line is one of what two terminals show while a holder is frozen.
type line struct {
	at       time.Duration
	terminal int
	text     string
	style    string // of the picture: that of a command, of what it says, or of what happens to it
}

// A recording has the lines of one story.
type recording struct {
	mu    sync.Mutex
	began time.Time
	lines []line
}

func (r *recording) note(terminal int, style, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line{time.Since(r.began), terminal, text, style})
}

// The places of the programs of examples/fencing, and of the Python that `make python` has prepared.
const (
	fencing = "examples/fencing/"
	python  = ".cache/python/bin/python"
	client  = "clients/python/src"
	show    = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
)

// record freezes a holder before each of two services, of which one has a gate, and draws what the terminals show.
func record(ctx context.Context, program, folder string) error {
	s, err := begin(ctx, program)
	if err != nil {
		return err
	}
	defer s.end()
	marks, err := os.MkdirTemp("", "pictures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(marks)
	service := exec.CommandContext(ctx, python, fencing+"service.py", filepath.Join(marks, "marks"), "0")
	service.Env = append(os.Environ(), "PYTHONPATH="+client)
	out, err := service.StdoutPipe()
	if err != nil {
		return err
	}
	if err := service.Start(); err != nil {
		return err
	}
	defer func() { _ = service.Process.Kill(); _ = service.Wait() }()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	stories := []*recording{{}, {}}
	for i, of := range []struct{ kind, sold string }{{"naive", "1 and 5"}, {"fenced", "5"}} {
		shop := strings.TrimSpace(address) + "/" + of.kind + "/apples"
		if err := stories[i].play(ctx, s, shop); err != nil {
			return err
		}
		left, err := exec.CommandContext(ctx, python, "-c", show, shop).Output()
		if err != nil {
			return err
		}
		stories[i].note(1, "event", fmt.Sprintf("(%s of 10 are sold: the service counts %s)", of.sold, strings.TrimSpace(string(left))))
	}
	return os.WriteFile(filepath.Join(folder, "frozen.svg"), []byte(draw(stories)), 0o600)
}

// play has one holder frozen while another one is granted its lock.
func (r *recording) play(ctx context.Context, s *scene, shop string) error {
	r.began = time.Now()
	first, holds, err := r.sell(ctx, s, 0, shop, "1", "--work", "2")
	if err != nil {
		return err
	}
	<-holds
	_ = first.Process.Signal(syscall.SIGSTOP)
	r.note(0, "event", "(frozen)")
	expire := exec.CommandContext(ctx, "go", "tool", "-modfile=tools/grpcurl/go.mod", "grpcurl", "-plaintext", "-d",
		`{"lock":"apples"}`, s.address, "sidekeeper.dev.v1.DevService/ExpireLease")
	if out, err := expire.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	r.note(0, "event", "(its lease has expired)")
	second, _, err := r.sell(ctx, s, 1, shop, "5", "--work", "1")
	if err != nil {
		return err
	}
	_ = second.Wait()
	r.note(0, "event", "(goes on)")
	_ = first.Process.Signal(syscall.SIGCONT)
	_ = first.Wait()
	return nil
}

// sell runs a program that sells apples, and notes what it says. It holds the lock when the channel is closed.
func (r *recording) sell(ctx context.Context, s *scene, terminal int, shop string, args ...string) (*exec.Cmd, <-chan struct{}, error) {
	command := exec.CommandContext(ctx, python, append([]string{fencing + "sell.py", shop}, args...)...)
	command.Env = append(os.Environ(), "SIDEKEEPER_ADDRESS="+s.address, "PYTHONPATH="+client)
	said, write := io.Pipe()
	command.Stdout, command.Stderr = write, write
	r.note(terminal, "command", "$ python sell.py …/"+strings.Join(strings.Split(shop, "/")[3:], "/")+" "+args[0])
	if err := command.Start(); err != nil {
		return nil, nil, err
	}
	holds := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			r.note(terminal, "said", lines.Text())
			if strings.HasPrefix(lines.Text(), "holding") {
				close(holds)
			}
		}
	}()
	return command, holds, nil
}

// What the picture measures, in pixels, and the longest that nothing happens in it.
const (
	width, margin, lineHeight = 900, 20, 20
	longestPause              = 1200 * time.Millisecond
	widest                    = 56 // places of a terminal
)

const styles = `<style>
text{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#1f2328}.head{font:600 14px system-ui,sans-serif}
.card{fill:#fff;stroke:#d1d9e0}.event{fill:#59636e;font-style:italic}.said{fill:#0969da}.refused{fill:#cf222e}
.line{animation:show .01s both}@keyframes show{from{opacity:0}}
@media(prefers-reduced-motion:reduce){.line{animation:none}}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.card{fill:#151b23;stroke:#3d444d}.event{fill:#9198a1}.said{fill:#4493f8}.refused{fill:#f85149}}
</style>
`

// draw makes the picture: each story below the one before, its terminals side by side, each line when it came.
func draw(stories []*recording) string {
	var body strings.Builder
	y, at := margin, time.Second
	for i, story := range stories {
		title := []string{"Whoever trusts the lock: the late write damages what another one has written", "Behind a gate: the late write is refused"}[i]
		fmt.Fprintf(&body, `<text class="head" x="%d" y="%d">%s</text>`+"\n", margin, y+14, title)
		y += 2 * lineHeight
		rows, last := [2]int{}, time.Duration(0)
		for _, of := range story.lines {
			at += min(of.at-last, longestPause)
			last = of.at
			style := cmp.Or(map[bool]string{true: "refused"}[strings.HasPrefix(of.text, "refused") || strings.HasSuffix(of.text, "counts 9)")], of.style)
			for _, text := range folded(of.text) {
				fmt.Fprintf(&body, `<text class="line %s" style="animation-delay:%.1fs" x="%d" y="%d">`, style, at.Seconds(),
					margin+of.terminal*width/2, y+rows[of.terminal]*lineHeight)
				_ = xml.EscapeText(&body, []byte(text))
				body.WriteString("</text>\n")
				rows[of.terminal]++
			}
			if of.terminal == 0 { // so that one can read down both in the order of events
				rows[1] = max(rows[1], rows[0])
			} else {
				rows[0] = max(rows[0], rows[1])
			}
		}
		y += (max(rows[0], rows[1]) + 1) * lineHeight
		at += 2 * longestPause
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%d" height="%d" viewBox="0 0 %d %d">
<title>A holder is frozen, another one is granted its lock and writes; then the first one goes on and writes, too</title>
%s<rect class="card" x=".5" y=".5" width="%d" height="%d" rx="6"/>
%s</svg>
`, width, y, width, y, styles, width-1, y-1, body.String())
}

// folded are the lines that a text takes in a terminal.
func folded(text string) (lines []string) {
	for _, word := range strings.Fields(text) {
		if n := len(lines); n > 0 && len([]rune(lines[n-1]))+1+len([]rune(word)) <= widest {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
