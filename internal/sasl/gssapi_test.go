package sasl

import (
	"bytes"
	"crypto/rand"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

func newKey() types.EncryptionKey {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return types.EncryptionKey{KeyType: etypeID.AES256_CTS_HMAC_SHA1_96, KeyValue: key}
}

// begun is an exchange that has sent its request, and what the server has read in it.
func begun(t testing.TB) (*gssExchange, types.Authenticator) {
	t.Helper()
	key := newKey()
	service := types.NewPrincipalName(nametype.KRB_NT_SRV_HST, "zookeeper/zk1")
	sealed, err := crypto.GetEncryptedData([]byte("for the server alone"), newKey(), keyusage.KDC_REP_TICKET, 1)
	if err != nil {
		t.Fatal(err)
	}
	e := &gssExchange{ticket: ticket{
		ticket: messages.Ticket{TktVNO: iana.PVNO, Realm: "EXAMPLE.TEST", SName: service, EncPart: sealed},
		key:    key, client: types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, "sidekeeper"), realm: "EXAMPLE.TEST",
	}}
	token, done, err := e.Next(nil)
	if done || err != nil {
		t.Fatal(done, err)
	}
	kind, message, err := kerberosMessage(token)
	var request messages.APReq
	if err == nil {
		err = request.Unmarshal(message)
	}
	if err == nil {
		err = request.DecryptAuthenticator(key)
	}
	if err != nil || kind != requestToken {
		t.Fatal(kind, err)
	}
	return e, request.Authenticator
}

// replyTo is a server's proof, sealed with a key.
func replyTo(t testing.TB, proof messages.EncAPRepPart, key types.EncryptionKey) []byte {
	t.Helper()
	opened, err := asn1.Marshal(proof)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(opened, asnAppTag.EncAPRepPart), key, keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := asn1.Marshal(messages.APRep{PVNO: iana.PVNO, MsgType: msgtype.KRB_AP_REP, EncPart: sealed})
	if err != nil {
		t.Fatal(err)
	}
	message := asn1tools.AddASNAppTag(reply, asnAppTag.APREP)
	return asn1tools.AddASNAppTag(bytes.Join([][]byte{kerberosOID, replyToken[:], message}, nil), 0)
}

// offer is what a server offers, wrapped by a key; the checksum stands before the offer if it is rotated.
func offer(t testing.TB, layers, flags byte, key types.EncryptionKey, rotated bool) []byte {
	t.Helper()
	wrapped := gssapi.WrapToken{Flags: flags, EC: 12, Payload: []byte{layers, 0, 1, 0}}
	if err := wrapped.SetCheckSum(key, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
		t.Fatal(err)
	}
	token, err := wrapped.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if rotated {
		binary.BigEndian.PutUint16(token[6:], 12)
		token = append(token[:16:16], append(token[20:32:32], token[16:20]...)...)
	}
	return token
}

func TestTheServersProofIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(proof *messages.EncAPRepPart)
		stray  bool // the server does not know the key in the ticket
		proved bool
	}{
		"right":         {func(*messages.EncAPRepPart) {}, false, true},
		"another key":   {func(*messages.EncAPRepPart) {}, true, false},
		"another time":  {func(p *messages.EncAPRepPart) { p.CTime = p.CTime.Add(time.Second) }, false, false},
		"a replay":      {func(p *messages.EncAPRepPart) { p.Cusec = (p.Cusec + 1) % 1e6 }, false, false},
		"its own key":   {func(p *messages.EncAPRepPart) { p.Subkey = newKey() }, false, true},
		"with a number": {func(p *messages.EncAPRepPart) { p.SequenceNumber = 7 }, false, true},
	} {
		e, mine := begun(t)
		proof := messages.EncAPRepPart{CTime: mine.CTime, Cusec: mine.Cusec}
		c.change(&proof)
		key := e.ticket.key
		if c.stray {
			key = newKey()
		}
		token, done, err := e.Next(replyTo(t, proof, key))
		if c.proved != (err == nil) || !c.proved && !errors.Is(err, errUnproved) || done || len(token) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatTheServerOffersIsChecked(t *testing.T) {
	t.Parallel()
	const acceptor = 1
	for name, c := range map[string]struct {
		layers, flags byte
		own           bool // the server has chosen the key
		stray         bool // and wraps with another one
		rotated       bool
		taken         bool
	}{
		"nothing":                    {layers: 1, flags: acceptor, taken: true},
		"everything":                 {layers: 7, flags: acceptor, taken: true},
		"rotated":                    {layers: 7, flags: acceptor, rotated: true, taken: true},
		"by its own key":             {layers: 1, flags: acceptor | wrapAcceptorsKey, own: true, taken: true},
		"not by its own key":         {layers: 1, flags: acceptor, own: true},
		"by a key that is not there": {layers: 1, flags: acceptor | wrapAcceptorsKey},
		"only protection":            {layers: 6, flags: acceptor},
		"sealed":                     {layers: 1, flags: acceptor | wrapSealed},
		"by another key":             {layers: 1, flags: acceptor, stray: true},
		"by the client":              {layers: 1},
	} {
		e, mine := begun(t)
		proof := messages.EncAPRepPart{CTime: mine.CTime, Cusec: mine.Cusec}
		key := mine.SubKey
		if c.own {
			key = newKey()
			proof.Subkey = key
		}
		if _, _, err := e.Next(replyTo(t, proof, e.ticket.key)); err != nil {
			t.Fatal(err)
		}
		if c.stray {
			key = newKey()
		}
		token, done, err := e.Next(offer(t, c.layers, c.flags, key, c.rotated))
		if c.taken != (err == nil) || done {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		var choice gssapi.WrapToken
		if err := choice.Unmarshal(token, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		right, err := choice.Verify(key, keyusage.GSSAPI_INITIATOR_SEAL)
		if !right || !bytes.Equal(choice.Payload, []byte{1, 0, 0, 0}) || choice.SndSeqNum != uint64(mine.SeqNumber) {
			t.Errorf("%s: chooses %x, %v", name, choice.Payload, err)
		}
		if _, done, err := e.Next(nil); !done || err != nil {
			t.Errorf("%s: %t, %v", name, done, err)
		}
	}
}

func TestAServerThatAnswersNothingIsNotProved(t *testing.T) {
	t.Parallel()
	e, _ := begun(t)
	if _, _, err := e.Next(nil); !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
}

// Whatever a server answers, it proves nothing without the key, and never makes the sidecar panic.
func FuzzKerberosAnswers(f *testing.F) {
	key := newKey()
	f.Add(replyTo(f, messages.EncAPRepPart{CTime: time.Unix(0, 0).UTC()}, key), offer(f, 1, 1, key, false))
	f.Add([]byte{0x60, 0x84, 0xff}, []byte{5, 4, 1, 0xff, 0, 12, 0, 1})
	f.Add(asn1tools.AddASNAppTag(append(append([]byte{}, kerberosOID...), 3, 0, 0x7e, 0), 0), []byte{})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		e, _ := begun(t)
		exchange := guarded(e)
		if _, _, err := exchange.Next(first); err == nil {
			t.Errorf("%x proves the server", first)
		}
		e.step = 2
		if _, _, err := exchange.Next(second); err == nil {
			t.Errorf("%x is an offer", second)
		}
	})
}

func TestPrincipals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"zookeeper": true, "zookeeper/zk1.example": true, "zookeeper/zk1@EXAMPLE.TEST": true, "sidekeeper@EXAMPLE.TEST": true,
		"": false, "/": false, "a/": false, "a/b/c": false, "a@": false, "a@b@c": false, "a b": false, "@R": false,
	} {
		if IsPrincipal(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
	for service, want := range map[string]string{
		"zookeeper": "zookeeper/zk1.example ", "zookeeper@R": "zookeeper/zk1.example R", "zk/all": "zk/all ", "zk/all@R": "zk/all R",
	} {
		name, realm := Kerberos{Service: service}.of("ZK1.example.")
		if got := name.PrincipalNameString() + " " + realm; got != want {
			t.Errorf("%s: %s", service, got)
		}
	}
}
