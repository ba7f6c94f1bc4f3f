package zookeeper

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/jute"
	"github.com/sidekeeper/sidekeeper/internal/sasl"
)

// A Demand is what a server wants to know of who connects, and what it is told.
type Demand struct {
	Authentication bool   // it answers nothing to a client that is known by its connection alone
	Mechanism      string // of SASL that it takes part in; empty for none
	Given          string // that of the sidecar; empty for none
	As             string // who the sidecar is by that
}

// demandTime is for how long a server is asked.
const demandTime = 3 * time.Second

// Demand asks a server by a session that does not authenticate. A server that demands it lets such a session last until its timeout, which is
// the shortest that the server grants.
func (c *Client) Demand(ctx context.Context, server string) (Demand, error) {
	demand := Demand{}
	if who := c.config.SASL; who != nil {
		demand.Given, demand.As = who.Mechanism(), who.String()
	}
	ctx, cancel := context.WithTimeout(ctx, demandTime)
	defer cancel()
	conn, err := c.connect(ctx, server)
	if err != nil {
		return demand, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(handshakeFrame(0, time.Millisecond, make([]byte, passwordBytes))); err != nil {
		return demand, err
	}
	if _, _, err := readGreeting(conn); err != nil {
		return demand, err
	}
	reply, err := askRaw(conn, saslFrame(nil), saslXid)
	if err != nil {
		return demand, err
	}
	var refused bool
	if demand.Mechanism, demand.Authentication, refused = mechanismIn(reply); refused {
		return demand, nil
	}
	look := ownRequest{kind: opExists, body: append(appendText(nil, "/"), 0)}
	reply, err = askRaw(conn, rawFrame(look, 1), 1)
	if err == nil {
		demand.Authentication = int32(binary.BigEndian.Uint32(reply[12:])) == codeAuthDemanded
		_, err = conn.Write(closeFrame())
	}
	return demand, err
}

// mechanismIn is the mechanism of a server that has answered like this to an empty token. Kerberos has no empty token to begin with: the server
// refuses the client, by the code that says whether it demands authentication. One without a mechanism answers nothing.
func mechanismIn(reply []byte) (mechanism string, demanded, refused bool) {
	switch code := int32(binary.BigEndian.Uint32(reply[12:])); {
	case code == codeAuthDemanded, code == codeAuthFailed:
		return sasl.GSSAPI, code == codeAuthDemanded, true
	case code != 0:
		return "", false, false
	}
	if token := jute.NewDecoder(reply[replyHead:]).Bytes(); bytes.Contains(token, []byte("md5-sess")) {
		return sasl.DigestMD5, false, false
	}
	return "", false, false
}

// askRaw sends a request and waits for its answer.
func askRaw(conn net.Conn, frame []byte, xid uint32) ([]byte, error) {
	if _, err := conn.Write(frame); err != nil {
		return nil, err
	}
	for {
		reply, err := readReply(conn)
		if err != nil {
			return nil, err
		}
		if binary.BigEndian.Uint32(reply) == xid {
			return reply, nil
		}
	}
}

// rawFrame is a request with its length and number.
func rawFrame(request ownRequest, xid uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(request.body)))
	b = binary.BigEndian.AppendUint32(b, xid)
	b = binary.BigEndian.AppendUint32(b, uint32(request.kind))
	return append(b, request.body...)
}

const opWhoAmI = 107

// WhoAmI is who the ensemble takes the sidecar for, as scheme:id. Servers before 3.7 do not tell: then there is an error.
func (c *Client) WhoAmI(ctx context.Context) ([]string, error) {
	a, cancel := c.asker(ctx)
	defer cancel()
	return ask(c.reader, a, func(v *view) ([]string, error) {
		return wait(a, newFuture[[]string]().launch(v.session, func() ([]string, error) {
			return call(a.ctx, v.session, "whoAmI", func(*zk.Conn) ([]string, error) {
				answers, err := v.session.askOwn(ownRequest{kind: opWhoAmI})
				if err != nil {
					return nil, err
				}
				return identitiesIn(answers[0].answer)
			})
		}))
	})
}

func identitiesIn(answer []byte) ([]string, error) {
	body := jute.NewDecoder(answer)
	identities := make([]string, body.Length(8))
	for i := range identities {
		scheme, id := body.Text(), body.Text()
		identities[i] = scheme + ":" + id
	}
	if body.Failed() {
		return nil, zk.ErrShortBuffer
	}
	return identities, nil
}
