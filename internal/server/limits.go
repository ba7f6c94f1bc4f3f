package server

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/sidekeeper/sidekeeper/internal/budget"
)

// Limits of one connection that no setting changes.
const (
	longestHeaders    = 16 << 10        // bytes of one call's headers
	handshakeTimeout  = 5 * time.Second // from accept to the HTTP/2 preface
	shortestPing      = 5 * time.Second // how often a client may ping
	streamWindow      = 64 << 10        // bytes a caller may send on one stream before they are read
	connectionWindow  = 1 << 20
	connectionBuffers = 4 << 10 // small: a thousand connections are to stay small

	mostHTTP    = 64               // connections of one listener for scrapers, or for those who look at the page
	scrapeWrite = 30 * time.Second // from a scrape's headers to the end of its answer

	mostProbes   = 4               // of one connection at a time, over gRPC
	longestProbe = 512             // bytes
	probeTime    = 2 * time.Second // from a probe's headers to the end of its message
)

// limitsOf are the transport's limits and its keepalive, each set on purpose: by default gRPC notices neither a frozen caller
// nor a dropped network within minutes, and bounds neither streams nor headers. There is no MaxConnectionAge,
// since a connection's end is the end of every lock held over it.
func limitsOf(options Options) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: options.KeepaliveTime, Timeout: options.KeepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: shortestPing, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxRecvMsgSize(budget.LongestMessage),
		grpc.MaxHeaderListSize(longestHeaders),
		// Twice the long-lived streams, so that Check and Release never queue behind them.
		grpc.MaxConcurrentStreams(uint32(2 * options.MaxStreams)),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.ReadBufferSize(connectionBuffers),
		grpc.WriteBufferSize(connectionBuffers),
	}
}
