package caller

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"strings"
	"testing"
)

func TestACertificateWhoseNameCouldBeMisreadIsNobodys(t *testing.T) {
	for id, want := range map[string]string{
		"spiffe://test":                              "spiffe://test",
		"spiffe://test/ns/web/sa/shop":               "spiffe://test/ns/web/sa/shop",
		"spiffe://test/a/../b":                       "error: without . or ..",
		"spiffe://test/a//b":                         "error: empty segments",
		"spiffe://test/":                             "error: empty segments",
		"spiffe://test:8080/a":                       "error: a trust domain",
		"spiffe://user@test/a":                       "error: a trust domain",
		"spiffe://test/a?x=y":                        "error: a trust domain",
		"spiffe://test/a#b":                          "error: a trust domain",
		"spiffe://TEST/a":                            "error: a trust domain",
		"spiffe:///a":                                "error: a trust domain",
		"spiffe://test/*":                            "error: a trust domain",
		"spiffe:opaque":                              "error: an identity is",
		"spiffe://test/a https://test":               "error: one URI, not 2",
		"spiffe://test/a spiffe://test/b":            "error: one URI, not 2",
		"spiffe://test/" + strings.Repeat("a", 2048): "error: at most 2048 bytes",
		"https://test":                               "cert:app",
	} {
		certificate := &x509.Certificate{Subject: pkix.Name{CommonName: "app"}}
		for text := range strings.FieldsSeq(id) {
			uri, err := url.Parse(text)
			must(t, err)
			certificate.URIs = append(certificate.URIs, uri)
		}
		got, err := IdentityOf(certificate)
		rule, refused := strings.CutPrefix(want, "error: ")
		if refused && (err == nil || !strings.Contains(err.Error(), rule)) || !refused && got != want {
			t.Errorf("%s: got %q, %v; want %s", id, got, err, want)
		}
	}
}

func TestACommonNameThatCannotBeReadIsReplacedByTheKey(t *testing.T) {
	for _, name := range []string{"", " app", "M\u00fcller", "line\nbreak", "nul\x00"} {
		got, err := IdentityOf(&x509.Certificate{Subject: pkix.Name{CommonName: name}, RawSubjectPublicKeyInfo: []byte("key")})
		if err != nil || !strings.HasPrefix(got, "key:") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}
