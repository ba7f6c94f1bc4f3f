package sasl

import (
	"errors"
	"strings"
	"testing"
)

// challenge is that of a server of ZooKeeper.
const challenge = `realm="zk-sasl-md5",nonce="OA6MG9tEQGm2hh",charset=utf-8,algorithm=md5-sess,qop="auth"`

func exchangeOf(t *testing.T, user, password, uri, nonce, challenge string) (e *digestExchange, response string) {
	t.Helper()
	e = &digestExchange{user: user, password: password, nonce: nonce, uri: uri}
	if token, done, err := e.Next(nil); len(token) != 0 || done || err != nil {
		t.Fatalf("%q, %t, %v", token, done, err)
	}
	token, done, err := e.Next([]byte(challenge))
	if done || err != nil {
		t.Fatal(done, err)
	}
	return e, string(token)
}

func TestTheExampleOfRFC2831(t *testing.T) {
	t.Parallel()
	e, response := exchangeOf(t, "chris", "secret", "imap/elwood.innosoft.com", "OA6MHXh6VqTrRk",
		`realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8`)
	if !strings.Contains(response, ",response=d388dad90d4bbd760a152321f2143af7,") || !strings.Contains(response, `,username="chris",`) {
		t.Error(response)
	}
	if _, done, err := e.Next([]byte("rspauth=ea40f60335c427b5527b84dbabcdfffd")); !done || err != nil {
		t.Error(done, err)
	}
}

func TestAServerThatDoesNotKnowThePasswordIsFoundOut(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]error{
		"rspauth=ea40f60335c427b5527b84dbabcdfffe": errUnproved, "rspauth=": errUnproved, `rspauth="ea`: errUnproved, "nonsense": errUnproved,
		"": ErrNothing,
	} {
		e, _ := exchangeOf(t, "chris", "secret", digestURI, "OA6MHXh6VqTrRk", challenge)
		if _, _, err := e.Next([]byte(answer)); !errors.Is(err, want) {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

func TestChallengesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{
		"", "x", `nonce="a`, `nonce="a",qop="auth-int",algorithm=md5-sess`, `nonce="a",algorithm=md5`, `qop="auth",algorithm=md5-sess`,
	} {
		e := &digestExchange{user: "chris", password: "secret", nonce: "n", uri: digestURI, step: 1}
		if _, done, err := e.Next([]byte(wrong)); err == nil || done {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func TestNamesAndPasswordsAreQuotedAndWrittenAsJavaDoes(t *testing.T) {
	t.Parallel()
	_, response := exchangeOf(t, `a"b\c`, "p", digestURI, "n", challenge)
	if !strings.Contains(response, `username="a\"b\\c"`) {
		t.Error(response)
	}
	for text, want := range map[string]string{"sécret": "s\xe9cret", "Ω": "Ω", "éΩ": "éΩ"} {
		if got := latin(text); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
	if got, err := directives(`a="x,\"y\"", b=c ,,a=later`); err != nil || got["a"] != `x,"y"` || got["b"] != "c" {
		t.Errorf("%q, %v", got, err)
	}
}

// Whatever a server answers, an exchange ends with an error or a proof, and never in a panic.
func FuzzDigestAnswers(f *testing.F) {
	f.Add(challenge, "rspauth=ea40f60335c427b5527b84dbabcdfffd")
	f.Add(`nonce="\`, `,,=",`)
	f.Fuzz(func(t *testing.T, first, second string) {
		e := &digestExchange{user: "chris", password: "secret", nonce: "n", uri: digestURI}
		_, _, _ = e.Next(nil)
		if _, _, err := e.Next([]byte(first)); err != nil {
			return
		}
		if _, _, err := e.Next([]byte(second)); err == nil {
			t.Errorf("%q proves the server", second)
		}
	})
}
