package sasl

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// A gssExchange is one exchange of RFC 4752 in the tokens of RFC 4121: the client's AP-REQ, the server's AP-REP, an empty token, the layers of
// protection that the server offers, and the one that the client takes: none.
type gssExchange struct {
	ticket    ticket
	mine      types.Authenticator
	key       types.EncryptionKey // of what comes behind the AP-REP
	acceptors bool                // the server has chosen the key
	step      int
}

func (e *gssExchange) Next(answer []byte) (token []byte, done bool, err error) {
	e.step++
	switch e.step {
	case 1:
		token, err = e.request()
	case 2:
		token, err = []byte{}, e.prove(answer)
	case 3:
		token, err = e.choose(answer)
	default:
		// The server has taken the choice, and is proved already. Java's answers no token to it. One with allowSaslFailedClients=true answers
		// the same where it refuses the choice; it then knows the client as nobody, who can use none of the client's nodes.
		return nil, true, nil
	}
	return token, false, err
}

// What precedes a Kerberos message in a token of the GSS-API: the length of nothing but the mechanism's name, 1.2.840.113554.1.2.2.
var kerberosOID = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

// The kinds of messages in tokens.
var (
	requestToken = [2]byte{1, 0}
	replyToken   = [2]byte{2, 0}
	errorToken   = [2]byte{3, 0}
)

// request is a token with the ticket, which asks the server to prove itself. It brings a key for this exchange alone.
func (e *gssExchange) request() ([]byte, error) {
	mine, err := types.NewAuthenticator(e.ticket.realm, e.ticket.client)
	if err != nil {
		return nil, err
	}
	key := make([]byte, len(e.ticket.key.KeyValue))
	_, _ = rand.Read(key) // never fails
	mine.SubKey = types.EncryptionKey{KeyType: e.ticket.key.KeyType, KeyValue: key}
	mine.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: contextFlags(gssapi.ContextFlagMutual | gssapi.ContextFlagInteg)}
	request, err := messages.NewAPReq(e.ticket.ticket, e.ticket.key, mine)
	if err != nil {
		return nil, err
	}
	types.SetFlag(&request.APOptions, flags.APOptionMutualRequired)
	message, err := request.Marshal()
	if err != nil {
		return nil, err
	}
	e.mine, e.key = mine, mine.SubKey
	return asn1tools.AddASNAppTag(append(append(append([]byte{}, kerberosOID...), requestToken[:]...), message...), 0), nil
}

// contextFlags are what the client asks for, as a checksum of the kind that carries them: RFC 4121, 4.1.1.
func contextFlags(asked uint32) []byte {
	checksum := make([]byte, 24) // the length of the bindings, the bindings to a channel, of which there are none, the flags
	binary.LittleEndian.PutUint32(checksum, 16)
	binary.LittleEndian.PutUint32(checksum[20:], asked)
	return checksum
}

// prove has the server prove itself: only who can read the ticket knows the key in it and, by that, when the client has sent it.
func (e *gssExchange) prove(answer []byte) error {
	kind, message, err := kerberosMessage(answer)
	switch {
	case err != nil:
		return err
	case kind == errorToken:
		var told messages.KRBError
		if err := told.Unmarshal(message); err != nil {
			return errors.New("the server answered an error that cannot be read")
		}
		return told
	case kind != replyToken:
		return fmt.Errorf("%w: it answered a token of kind %x", errUnproved, kind)
	}
	var reply messages.APRep
	if err := reply.Unmarshal(message); err != nil {
		return fmt.Errorf("%w: %w", errUnproved, err)
	}
	opened, err := crypto.DecryptEncPart(reply.EncPart, e.ticket.key, keyusage.AP_REP_ENCPART)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnproved, err)
	}
	var proof messages.EncAPRepPart
	if err := proof.Unmarshal(opened); err != nil {
		return fmt.Errorf("%w: %w", errUnproved, err)
	}
	if !proof.CTime.Equal(e.mine.CTime.Truncate(time.Second)) || proof.Cusec != e.mine.Cusec {
		return fmt.Errorf("%w: its reply is to another request", errUnproved)
	}
	if len(proof.Subkey.KeyValue) > 0 {
		e.key, e.acceptors = proof.Subkey, true
	}
	return nil
}

// kerberosMessage is the message in a token, and its kind.
func kerberosMessage(token []byte) (kind [2]byte, message []byte, err error) {
	const application = 0x60 // and constructed
	if len(token) == 0 {
		return kind, nil, ErrNothing
	}
	malformed := errors.New("the server's token is none of Kerberos")
	if len(token) < 2 || token[0] != application {
		return kind, nil, malformed
	}
	inner := token[2:]
	if long := int(token[1]) - 0x80; long > 0 { // so many bytes of length
		if long > len(inner) {
			return kind, nil, malformed
		}
		inner = inner[long:]
	}
	head := len(kerberosOID) + len(kind)
	if len(inner) < head || !bytes.Equal(inner[:len(kerberosOID)], kerberosOID) {
		return kind, nil, malformed
	}
	copy(kind[:], inner[len(kerberosOID):])
	return kind, inner[head:], nil
}

// Flags of a wrapped token, and the layers of protection: RFC 4121, 4.2.2, and RFC 4752, 3.3.
const (
	wrapSealed       = 2
	wrapAcceptorsKey = 4

	noProtection = 1
)

// choose takes no protection of what follows, which ZooKeeper does not have: TLS protects it.
func (e *gssExchange) choose(answer []byte) ([]byte, error) {
	offer, err := e.unwrap(answer)
	if err != nil {
		return nil, err
	}
	if len(offer) != 4 || offer[0]&noProtection == 0 {
		return nil, fmt.Errorf("the server demands protection of all that follows (%x), which ZooKeeper does not have", offer)
	}
	encryption, err := crypto.GetEtype(e.key.KeyType)
	if err != nil {
		return nil, err
	}
	choice := gssapi.WrapToken{
		EC: uint16(encryption.GetHMACBitLength() / 8), SndSeqNum: uint64(e.mine.SeqNumber), Payload: []byte{noProtection, 0, 0, 0},
	}
	if e.acceptors {
		choice.Flags = wrapAcceptorsKey
	}
	if err := choice.SetCheckSum(e.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, err
	}
	return choice.Marshal()
}

// unwrap is what the server has wrapped, once its checksum is found right.
func (e *gssExchange) unwrap(token []byte) ([]byte, error) {
	if len(token) == 0 {
		return nil, ErrNothing
	}
	if len(token) > gssapi.HdrLen { // the rest may be rotated
		head, rest := token[:gssapi.HdrLen], token[gssapi.HdrLen:]
		by := int(binary.BigEndian.Uint16(head[6:])) % len(rest)
		token = append(append(append([]byte{}, head...), rest[by:]...), rest[:by]...)
	}
	var wrapped gssapi.WrapToken
	if err := wrapped.Unmarshal(token, true); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnproved, err)
	}
	if wrapped.Flags&wrapSealed != 0 || (wrapped.Flags&wrapAcceptorsKey != 0) != e.acceptors {
		return nil, fmt.Errorf("%w: a token with flags %x", errUnproved, wrapped.Flags)
	}
	if right, err := wrapped.Verify(e.key, keyusage.GSSAPI_ACCEPTOR_SEAL); !right {
		return nil, fmt.Errorf("%w: %w", errUnproved, err)
	}
	return wrapped.Payload, nil
}
