package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// browser is Chromium, without what it does by itself.
func browser() []chromedp.ExecAllocatorOption {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	for _, flag := range []string{"disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	return options
}

// photograph takes the page and the console, light and dark, and a terminal's text.
func photograph(ctx context.Context, page, console, terminal, folder string) error {
	ctx, cancel := chromedp.NewExecAllocator(ctx, append(browser(), chromedp.WindowSize(1200, 900))...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	asked := watchRequests(ctx)
	for _, scheme := range []string{"light", "dark"} {
		if err := photographPage(ctx, page, scheme, filepath.Join(folder, "page-"+scheme+".png")); err != nil {
			return err
		}
	}
	for _, url := range asked() {
		if !strings.HasPrefix(url, page) {
			return fmt.Errorf("the page asks %s", url)
		}
	}
	for _, one := range views {
		if err := one.photograph(ctx, console, folder); err != nil {
			return err
		}
	}
	drawn, err := lastScreen(terminal)
	if err != nil {
		return err
	}
	return photographText(ctx, drawn, filepath.Join(folder, "top.png"))
}

// watchRequests returns what the browser has asked for so far.
func watchRequests(ctx context.Context) func() []string {
	var mu sync.Mutex
	var asked []string
	chromedp.ListenTarget(ctx, func(event any) {
		if request, ok := event.(*network.EventRequestWillBeSent); ok {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, request.Request.URL)
		}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
}

func photographPage(ctx context.Context, page, scheme, file string) error {
	var title, text string
	var scripts int
	var picture []byte
	err := chromedp.Run(ctx,
		network.Enable(),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Navigate(page),
		chromedp.WaitVisible(`body[data-live="yes"]`, chromedp.ByQuery),
		chromedp.Sleep(3*time.Second), // so that there are latencies of some seconds
		chromedp.Title(&title),
		chromedp.Text("main", &text, chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelectorAll("main script, main img").length`, &scripts),
		chromedp.FullScreenshot(&picture, 100),
	)
	switch {
	case err != nil:
		return err
	case title != "Sidekeeper" || scripts != 0:
		return errors.New("a caller's name became markup")
	case !strings.Contains(text, hostile):
		return fmt.Errorf("the page does not show %s as text", hostile)
	}
	return os.WriteFile(file, picture, 0o644)
}

// A view is one of the console.
type view struct {
	file, address, scheme string
	width, height         int64
}

var views = []view{
	{"console-overview.png", "#/overview", "light", 1280, 800},
	{"console-lock.png", "#/locks/payments%2F17", "dark", 1280, 800},
	{"console-overview-narrow.png", "#/overview", "dark", 360, 720},
	{"console-lock-narrow.png", "#/locks/payments%2F17", "light", 360, 720},
}

// photograph takes one view of the console at this address.
func (v view) photograph(ctx context.Context, address, folder string) error {
	var picture []byte
	err := chromedp.Run(ctx,
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}}),
		chromedp.EmulateViewport(v.width, v.height),
		chromedp.Navigate("about:blank"), // or a second visit is none
		chromedp.Navigate(address),
		chromedp.WaitVisible(`body[data-live="yes"]`, chromedp.ByQuery),
		chromedp.Evaluate(fmt.Sprintf(`location.hash = %q`, v.address), nil),
		chromedp.Poll(`document.getElementById("tab-waits").textContent.includes("in a circle")`, nil),
		chromedp.Sleep(4*time.Second), // so that all rows have their holders, and all holders their leases
		chromedp.CaptureScreenshot(&picture),
	)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, v.file), picture, 0o644)
}

func photographText(ctx context.Context, markup, file string) error {
	page := `<!doctype html><meta charset="utf-8"><style>
body{margin:0;background:#14191b;color:#dfe6e7;display:inline-block;padding:14px 18px}
pre{margin:0;font:13px/1.35 "DejaVu Sans Mono",monospace}
.c1{font-weight:bold;color:#fff}.c2{color:#8b989c}.c33{color:#e0a040}.c31{color:#f2776b}</style><pre>` + markup + `</pre>`
	var picture []byte
	err := chromedp.Run(ctx,
		chromedp.Navigate("data:text/html;base64,"+base64.StdEncoding.EncodeToString([]byte(page))),
		chromedp.Screenshot("body", &picture, chromedp.ByQuery),
	)
	if err != nil {
		return err
	}
	return os.WriteFile(file, picture, 0o644)
}

var (
	color = regexp.MustCompile("\x1b\\[(\\d+)m")
	other = regexp.MustCompile("\x1b\\[[?\\d;]*[A-Za-ln-z]")
)

// lastScreen is the last whole drawing of a terminal, as HTML. It fails if the terminal was not given back.
func lastScreen(written string) (string, error) {
	drawings := strings.Split(written, "\x1b[H")
	if len(drawings) < 3 {
		return "", fmt.Errorf("top has drawn %d times: %q", len(drawings)-1, written)
	}
	if !strings.Contains(written, "\x1b[?25h\x1b[?1049l") {
		return "", errors.New("top has not given the terminal back")
	}
	last := strings.ReplaceAll(drawings[len(drawings)-2], "\r", "")
	last = html.EscapeString(other.ReplaceAllString(last, ""))
	return color.ReplaceAllStringFunc(last, func(code string) string {
		if number := color.FindStringSubmatch(code)[1]; number != "0" {
			return `<span class="c` + number + `">`
		}
		return "</span>"
	}), nil
}
