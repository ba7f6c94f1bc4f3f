package sasl

import (
	"context"
	"crypto/md5" //nolint:gosec // the mechanism is made of it
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Servers of ZooKeeper go by these names in DIGEST-MD5, wherever they run.
const (
	digestURI = "zookeeper/zk-sasl-md5"
	nonceUsed = "00000001" // how often the server's nonce was used: once
)

// A digest is the identity of a user with a password.
type digest struct {
	user     string
	password func() string // as it is now
}

// NewDigest makes the identity of a user with a password, which is asked for at each exchange.
func NewDigest(user string, password func() string) Identity { return digest{user, password} }

func (d digest) Mechanism() string                   { return DigestMD5 }
func (d digest) String() string                      { return DigestMD5 + " as " + d.user }
func (d digest) Ready(context.Context, string) error { return nil }
func (d digest) Refused(string)                      {}

func (d digest) Keep(ctx context.Context, _ func(string) bool, _ func(string, error)) { <-ctx.Done() }

func (d digest) Begin(string) (Exchange, error) {
	nonce := make([]byte, 24)
	_, _ = rand.Read(nonce) // never fails
	unique := base64.StdEncoding.EncodeToString(nonce)
	return &digestExchange{user: d.user, password: d.password(), nonce: unique, uri: digestURI}, nil
}

// A digestExchange is one exchange of RFC 2831: an empty token, the server's challenge, the client's response, the server's.
type digestExchange struct {
	user, password string
	nonce, uri     string // the client's, and the server's name
	step           int
	secret         string // what both sides know of each other: A1 of the RFC
	challenge      map[string]string
}

func (e *digestExchange) Next(answer []byte) (token []byte, done bool, err error) {
	e.step++
	switch e.step {
	case 1:
		return []byte{}, false, nil
	case 2:
		token, err = e.respond(answer)
		return token, false, err
	default:
		return nil, true, e.verify(answer)
	}
}

// respond answers the server's challenge.
func (e *digestExchange) respond(challenge []byte) ([]byte, error) {
	if len(challenge) == 0 {
		return nil, ErrNothing
	}
	var err error
	if e.challenge, err = directives(string(challenge)); err != nil {
		return nil, err
	}
	nonce := e.challenge["nonce"]
	switch qop := e.challenge["qop"]; {
	case nonce == "" || e.challenge["algorithm"] != "md5-sess":
		return nil, errors.New("the server's challenge is none of DIGEST-MD5")
	case qop != "" && !contains(qop, "auth"):
		return nil, fmt.Errorf("the server demands protection of all that follows (%s), which ZooKeeper does not have", qop)
	}
	realm := e.challenge["realm"]
	e.secret = sum(latin(e.user)+":"+latin(realm)+":"+latin(e.password)) + ":" + nonce + ":" + e.nonce
	response := fmt.Sprintf("charset=utf-8,username=%s,realm=%s,nonce=%s,nc=%s,cnonce=%s,digest-uri=%s,maxbuf=65536,response=%s,qop=auth",
		quote(e.user), quote(realm), quote(nonce), nonceUsed, quote(e.nonce), quote(e.uri), e.proof("AUTHENTICATE:"))
	return []byte(response), nil
}

// verify has the server show that it knows the password, too.
func (e *digestExchange) verify(answer []byte) error {
	if len(answer) == 0 {
		return ErrNothing
	}
	told, err := directives(string(answer))
	if err != nil || subtle.ConstantTimeCompare([]byte(told["rspauth"]), []byte(e.proof(":"))) != 1 {
		return fmt.Errorf("%w: it does not know the password", errUnproved)
	}
	return nil
}

// proof is what only a side can say that knows the password.
func (e *digestExchange) proof(side string) string {
	digest := hexSum(e.secret) + ":" + e.challenge["nonce"] + ":" + nonceUsed + ":" + e.nonce + ":auth:" + hexSum(side+e.uri)
	return hexSum(digest)
}

func sum(text string) string {
	digest := md5.Sum([]byte(text)) //nolint:gosec // as above
	return string(digest[:])
}

func hexSum(text string) string { return hex.EncodeToString([]byte(sum(text))) }

// latin is the text in ISO 8859-1 if that has all its letters, as the RFC and Java want it, else in UTF-8.
func latin(text string) string {
	b := make([]byte, 0, len(text))
	for _, letter := range text {
		if letter > 0xFF {
			return text
		}
		b = append(b, byte(letter))
	}
	return string(b)
}

func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func contains(list, word string) bool {
	for each := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(each) == word {
			return true
		}
	}
	return false
}

// directives are the names and values of a list name=value,name="value". The first value of a name counts.
func directives(text string) (map[string]string, error) {
	values := map[string]string{}
	for rest := strings.TrimLeft(text, ", \t"); rest != ""; rest = strings.TrimLeft(rest, ", \t") {
		name, behind, found := strings.Cut(rest, "=")
		if !found {
			return nil, fmt.Errorf("the server's token is no list of names and values: %.40q", rest)
		}
		value, behind, found := valueOf(behind)
		if !found {
			return nil, fmt.Errorf("the server's token ends within %.40q", name)
		}
		rest = behind
		if name = strings.TrimSpace(name); values[name] == "" {
			values[name] = value
		}
	}
	return values, nil
}

// valueOf takes one value from the beginning of a text.
func valueOf(text string) (value, rest string, found bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexByte(text, ',')
		if end < 0 {
			end = len(text)
		}
		return strings.TrimSpace(text[:end]), text[end:], true
	}
	var unquoted strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return unquoted.String(), text[i+1:], true
		case '\\':
			i++
		}
		if i < len(text) {
			unquoted.WriteByte(text[i])
		}
	}
	return "", "", false
}
