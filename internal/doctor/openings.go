package doctor

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// plainPort is the client port of ensembles that were not told of another.
const plainPort = "2181"

// openingTime bounds one try.
const openingTime = 2 * time.Second

// An opening is a way to a server that the sidecar does not need.
type opening struct {
	server, address string
	secure          bool // over TLS without a certificate; else in plain
}

// openings tries whether others reach the ensemble past the sidecar, from where it runs and with nothing that it has: what is beside it, such
// as the other containers of its pod, has the same network. Servers of this machine are left out, and an ensemble that the
// sidecar itself reaches in plain.
func (e *examination) openings(ctx context.Context) {
	if !e.Secure {
		return
	}
	var found []opening
	for _, server := range e.Servers {
		if isElsewhere(server) {
			found = append(found, e.waysTo(ctx, server)...)
		}
	}
	open := make([]bool, len(found))
	var tries sync.WaitGroup
	for i, way := range found {
		tries.Go(func() { open[i] = e.isOpen(ctx, way) })
	}
	tries.Wait()
	for i, way := range found {
		switch {
		case !open[i]:
		case way.secure:
			e.findf(Warning, way.server, "require client certificates: ssl.clientAuth=need",
				"answers clients without a certificate: whatever is beside the sidecar can reach it, and end sessions and locks")
		default:
			e.findf(Warning, way.server, "close that port, or keep all but sidecars from it: set secureClientPort alone, without clientPort",
				"answers in plain at %s: whatever is beside the sidecar can reach it, and end sessions and locks", way.address)
		}
	}
}

// waysTo are the server's own port, in plain and without a certificate, and where a plain one is usual or told.
func (e *examination) waysTo(ctx context.Context, server string) []opening {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil
	}
	ports := []string{port, plainPort}
	if answer, err := e.ensemble.Ask(ctx, server, "conf"); err == nil {
		if told := numbersIn(answer)["clientPort"]; told > 0 {
			ports = append(ports, strconv.Itoa(told))
		}
	}
	slices.Sort(ports)
	ways := []opening{{server, server, true}}
	for _, port := range slices.Compact(ports) {
		ways = append(ways, opening{server, net.JoinHostPort(host, port), false})
	}
	return ways
}

// isOpen says whether a server answers there, if only that it does not answer this word.
func (e *examination) isOpen(ctx context.Context, way opening) bool {
	open := false
	e.within(ctx, way.address, func(conn net.Conn) {
		if way.secure {
			conn = tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}) //nolint:gosec // it is told nothing
		}
		_, failure := io.WriteString(conn, "srvr\n") // with five bytes, a TLS server knows at once that this is none of its clients
		answer, _ := io.ReadAll(io.LimitReader(conn, 1<<10))
		open = len(answer) > 0 && isWord(answer) && failure == nil
	})
	return open
}

// within does something with a connection of its own to a server, if there is one, and for a short time.
func (e *examination) within(ctx context.Context, server string, do func(net.Conn)) {
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if e.Dial != nil {
		dial = e.Dial
	}
	conn, err := dial(ctx, "tcp", server)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	do(conn)
}

// isWord tells an answer to a four-letter word from the alert of a TLS server that got plain text.
func isWord(answer []byte) bool {
	return !slices.ContainsFunc(answer, func(b byte) bool { return b < ' ' && b != '\n' && b != '\t' && b != '\r' })
}
