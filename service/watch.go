package service

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
)

// How often a reader may ask to hear that its stream is still served.
const (
	shortestKeepalive = time.Second
	longestKeepalive  = time.Hour
)

var alive = &holdv1.Keepalive{}

// A keptAlive request says how often its stream sends something.
type keptAlive interface{ GetKeepalive() *durationpb.Duration }

func parseKeepalive(request keptAlive) (every *time.Duration, _ error) {
	return parseDuration("keepalive", request.GetKeepalive(), shortestKeepalive, longestKeepalive)
}

func keepAlive[M any](box *outbox.Outbox[M], every *time.Duration, message M) {
	if every != nil {
		box.KeepAlive(*every, message)
	}
}

// openWatch begins a Watch stream whose other fields are right. It returns what sends the stream's messages, and the stream's end. The message
// keepalive is sent if the request asks for it.
func openWatch[M any](request keptAlive, stream grpc.ServerStreamingServer[M], keepalive *M) (_ *outbox.Outbox[*M], of over, _ error) {
	every, err := parseKeepalive(request)
	if err != nil {
		return nil, of, err
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return nil, of, err
	}
	of = overOf(stream.Context())
	box := newOutbox(of, stream.Send)
	caller.AfterStatus(stream.Context(), box.Wait)
	keepAlive(box, every, keepalive)
	return box, of, nil
}

// showOn relays a broadcast to a Watch stream, and leaves it after the stream's status.
func showOn[K comparable, V, M any](
	stream grpc.ServerStreamingServer[M], shared *broadcast[K, V], drain *drain, of over, tell func(now shown[V]) error,
) error {
	caller.AfterStatus(stream.Context(), shared.leave)
	return relay(shared, drain, of, tell)
}

// A toldView is what a stream was told last: a view without ages, nil before the first, and whether it was stale.
type toldView struct {
	ageless proto.Message
	stale   bool
}

// isNews says whether a view differs from what was told, and takes it for told.
func (t *toldView) isNews(ageless proto.Message, stale bool) bool {
	if t.ageless != nil && t.stale == stale && proto.Equal(t.ageless, ageless) {
		return false
	}
	t.ageless, t.stale = ageless, stale
	return true
}
