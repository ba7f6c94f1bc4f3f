package link

import "encoding/binary"

// HTTP/2's frames, RFC 9113, sections 4.1 and 6.8.
const (
	http2Header = 9
	goAwayType  = 7
	everyStream = 1<<31 - 1
	noError     = 0
)

// GoAway tells the clients of all connections, between two frames of their servers, to open no further streams, and that all
// they have opened are served: who said otherwise would have clients repeat calls that were done. The servers know nothing of
// it. The link must read HTTP/2's frames.
func (l *Link) GoAway() {
	frame := []byte{0, 0, 8, goAwayType, 0, 0, 0, 0, 0}
	frame = binary.BigEndian.AppendUint32(frame, everyStream)
	frame = binary.BigEndian.AppendUint32(frame, noError)
	l.change(func() {
		for c := range l.connections {
			if down := c.pumps[ToClient]; !down.ended {
				down.put(parcel{data: frame})
			}
		}
	})
}

// http2Length is the length of the frame that some bytes begin with; more than there are if it is not whole.
func http2Length(data []byte) int {
	if len(data) < http2Header {
		return http2Header
	}
	return http2Header + int(data[0])<<16 + int(data[1])<<8 + int(data[2])
}
