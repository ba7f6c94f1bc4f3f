// Package top shows live what a sidecar has, from its admin listener.
package top

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/service"
)

const (
	maxStateBytes = 16 << 20 // bytes
	retryPause    = time.Second
)

// Options say what to show, and of which sidecar.
type Options struct {
	Admin   string        // address of its admin listener
	Timeout time.Duration // to reach it
	Once    bool
	JSON    bool
}

// A top shows what a sidecar has, from its admin listener.
type top struct {
	Options

	client *http.Client
}

// Run shows it until ctx ends or a person quits, or once where the output is no terminal. Keys are read where the input is a terminal.
func Run(ctx context.Context, options Options, in io.Reader, out io.Writer) error {
	t := &top{Options: options}
	if err := t.connect(); err != nil {
		return exit.UsageError(err)
	}
	return t.run(ctx, in, out)
}

// connect reads the address.
func (t *top) connect() error {
	network, address := "tcp", strings.TrimSuffix(strings.TrimPrefix(t.Admin, "http://"), "/")
	if path, ok := strings.CutPrefix(t.Admin, "unix://"); ok {
		network, address = "unix", path
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("--admin %q: an address is host:port or unix:///path", t.Admin)
	}
	dialer := &net.Dialer{Timeout: t.Timeout}
	t.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, ResponseHeaderTimeout: t.Timeout,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
	}}
	return nil
}

func (t *top) run(ctx context.Context, in io.Reader, out io.Writer) error {
	if t.JSON {
		return t.copyState(ctx, out)
	}
	terminal := screenOf(in, out)
	if t.Once || terminal == nil {
		return t.writeOnce(ctx, out)
	}
	return t.follow(ctx, terminal)
}

// get asks for one path. The caller must close the body.
func (t *top) get(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := t.client.Do(request)
	if err != nil {
		return nil, exit.With(exit.Unreachable, fmt.Errorf(
			"cannot reach a sidecar's admin listener at %s: %w (start it with --admin-listen, and say where with --admin)", t.Admin, rootOf(err),
		))
	}
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 200)) // it says why, or nothing
		response.Body.Close()
		why := show.Printable(string(bytes.TrimSpace(said)))
		return nil, exit.With(exit.Unreachable, fmt.Errorf("%s answers %s: %s", t.Admin, response.Status, why))
	}
	return response.Body, nil
}

// rootOf takes away the words of the HTTP client.
func rootOf(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return cmp.Or[error](op.Err, err)
	}
	return err
}

func (t *top) copyState(ctx context.Context, out io.Writer) error {
	body, err := t.get(ctx, "/state")
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(out, body)
	return err
}

func (t *top) writeOnce(ctx context.Context, out io.Writer) error {
	body, err := t.get(ctx, "/state")
	if err != nil {
		return err
	}
	defer body.Close()
	var state service.State
	if err := json.NewDecoder(io.LimitReader(body, maxStateBytes)).Decode(&state); err != nil {
		return exit.With(exit.Unreachable, fmt.Errorf("%s is not a sidecar's admin listener: %w", t.Admin, err))
	}
	_, err = io.WriteString(out, strings.Join(newView(&state, 0).lines(0), "\n")+"\n")
	return err
}

// news is a state, or why there is none.
type news struct {
	state   *service.State
	absence string
}

// follow redraws the screen with each state and each key until ctx ends or a person quits. A sidecar that goes away is waited for, once it
// was seen.
func (t *top) follow(ctx context.Context, screen *screen) error {
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	body, err := t.get(ctx, "/events")
	if err != nil {
		return err
	}
	told, pressed := make(chan news), make(chan string)
	reading.Go(func() { t.read(ctx, body, told) })
	screen.enter()
	defer screen.leave()
	if screen.cooked != nil {
		go readKeys(ctx, screen.keyboard, pressed)
	}
	for {
		select {
		case news := <-told:
			if news.state != nil {
				screen.show(news.state)
			} else {
				screen.note(news.absence)
			}
		case typed := <-pressed:
			if !screen.press(typed) {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// read tells each state of a stream, and of the next one when it has ended, until ctx ends.
func (t *top) read(ctx context.Context, body io.ReadCloser, told chan<- news) {
	tell := func(news news) {
		select {
		case told <- news:
		case <-ctx.Done():
		}
	}
	for err := error(nil); ctx.Err() == nil; body, err = t.get(ctx, "/events") {
		absence := "no answer from " + t.Admin + " any more; this is what was seen last"
		if err != nil {
			absence = err.Error()
		} else {
			states(body, func(state *service.State) { tell(news{state: state}) })
			body.Close()
		}
		tell(news{absence: absence})
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
}

// states tells each state of a stream, until the stream ends or is none of a sidecar's.
func states(body io.Reader, tell func(*service.State)) {
	events := bufio.NewScanner(body)
	events.Buffer(nil, maxStateBytes)
	for events.Scan() {
		text, ok := bytes.CutPrefix(events.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var state service.State
		if json.Unmarshal(text, &state) != nil {
			return
		}
		tell(&state)
	}
}

// screenOf is the terminal behind an output, with the one behind an input; nil if the former is none.
func screenOf(in io.Reader, out io.Writer) *screen {
	file, ok := out.(*os.File)
	if !ok {
		return nil
	}
	s := &screen{file: file}
	if width, _ := s.size(); width == 0 {
		return nil
	}
	if keyboard, is := in.(*os.File); is && term.IsTerminal(int(keyboard.Fd())) {
		s.keyboard = keyboard
	}
	return s
}
