package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

// unanswered reports a server that did not answer a four-letter word in that time, and what listens there instead.
func (e *examination) unanswered(ctx context.Context, server string, err error, waited time.Duration) {
	const port = "give --zookeeper the port that ZooKeeper's clients use, 2181 by default"
	switch speaks := e.speaks(ctx, server); {
	case e.Secure && e.isOpen(ctx, opening{server, server, false}):
		e.findf(Problem, server, "give its secureClientPort, or leave out --zookeeper-tls-ca",
			"answers without TLS, which --zookeeper-tls-ca demands")
	case isDistrusted(err):
		e.findf(Problem, server, "check --zookeeper-tls-ca and --zookeeper-tls-server-name against its certificate",
			"shows a certificate that is not trusted: %v", err)
	case isAlert(err):
		e.findf(Problem, server, "check --zookeeper-tls-cert and --zookeeper-tls-key", "refuses the sidecar's certificate: %v", err)
	case speaks == overTLS && !e.Secure:
		e.findf(Problem, server, "give --zookeeper-tls-ca, or the port of its clients without TLS", "answers over TLS alone")
	case speaks != "" && speaks != overTLS:
		e.findf(Problem, server, port, "is %s, not a server of ZooKeeper", speaks)
	case err == nil:
		e.findf(Problem, server, "check whether it reaches the others: it needs a majority", "does not serve requests")
	default:
		e.silent(ctx, server, err, waited)
	}
}

// silent reports a server that says nothing at all. One that hangs is a server still: without it in --zookeeper, sidecars would not come back.
func (e *examination) silent(ctx context.Context, server string, err error, waited time.Duration) {
	dialled, is := errors.AsType[*net.OpError](err)
	connected := !is || dialled.Op != "dial"
	switch {
	case !isTimeout(err) && connected:
		e.findf(Problem, server, "see its log", "ends connections without an answer: %v", err)
	case !isTimeout(err):
		e.findf(Problem, server, "start it; remove it from --zookeeper only if it is no longer part of the ensemble", "does not answer: %v", err)
	case connected:
		e.findf(Problem, server, "look at that server: a long garbage collection, a full or slow disk, or a stopped process. Restart it if that "+
			"lasts, and leave it in --zookeeper", "hangs: it has taken a connection, and has not answered within %v", tenths(waited))
	case ctx.Err() != nil && waited < time.Second:
		e.findf(e.unknown(), server, "give a longer --timeout", "was not asked: the time was over before")
	default:
		e.findf(Problem, server, "see that its machine runs, that it takes new connections, and that no firewall is between",
			"has taken no connection within %v", tenths(waited))
	}
}

func isTimeout(err error) bool {
	timeout, is := errors.AsType[net.Error](err)
	return is && timeout.Timeout()
}

func isDistrusted(err error) bool {
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return distrusted
}

// isAlert says whether the other side has ended a handshake, and said so.
func isAlert(err error) bool {
	ended, is := errors.AsType[*net.OpError](err)
	return is && ended.Op == "remote error"
}

// overTLS is for a server that talks to its clients over TLS.
const overTLS = "a TLS server"

// speaks is what listens at a port that is not ZooKeeper's; empty if nothing shows it. ZooKeeper itself closes a connection that begins so.
func (e *examination) speaks(ctx context.Context, server string) string {
	answer := e.answerTo(ctx, server, "GET / HTTP/1.0\r\n\r\n")
	switch {
	case bytes.HasPrefix(answer, []byte("HTTP/")):
		return "an HTTP server"
	case len(answer) > 4 && answer[3] == http2Settings:
		return "a gRPC server, such as a sidecar"
	}
	hello := false
	e.within(ctx, server, func(conn net.Conn) {
		err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) //nolint:gosec // it is told nothing
		hello = err == nil || isAlert(err)
	})
	if hello {
		return overTLS
	}
	return ""
}

// http2Settings is the type of the frame with which a server of HTTP/2 begins.
const http2Settings = 4

// answerTo is the beginning of what a server answers to a text.
func (e *examination) answerTo(ctx context.Context, server, text string) (answer []byte) {
	e.within(ctx, server, func(conn net.Conn) {
		if _, err := io.WriteString(conn, text); err == nil {
			answer = make([]byte, 64)
			n, _ := io.ReadAtLeast(conn, answer, 5)
			answer = answer[:n]
		}
	})
	return answer
}
