// It looks inside: what files and addresses are read as is told by no listener that is cheap to make.

package server

import (
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/ownpages"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/test/support/authority"
)

// Whatever a browser is made to send, the page is shown for names of this machine only, and not to other pages.
func FuzzHostsOfThePage(f *testing.F) {
	for _, seed := range [][2]string{
		{"localhost:7182", ""},
		{"[::1]", "none"},
		{"127.0.0.1.example", ""},
		{"localhost", "cross-site"},
		{"[::1%25eth0]:1", ""},
		{"127.1", "same-origin"},
		{"0x7f.1:80", ""},
		{"[localhost]", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	page := ownpages.Only(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), false)
	f.Fuzz(func(t *testing.T, host, site string) {
		request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		request.Host = host
		request.Header.Set("Sec-Fetch-Site", site)
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, request)
		if answer.Code != http.StatusOK {
			return
		}
		if site != "" && site != "none" && site != "same-origin" {
			t.Errorf("shown to a page that is %q", site)
		}
		asked, err := url.Parse("http://" + host)
		if err != nil {
			return // no browser asks for that
		}
		if ip := net.ParseIP(asked.Hostname()); asked.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			t.Errorf("shown for %q, which is %q", host, asked.Hostname())
		}
	})
}

// Whatever lies in the files of TLS, they are refused, or callers have to show a certificate of the authorities in them.
func FuzzTLSFiles(f *testing.F) {
	signer, folder := authority.New(f), f.TempDir()
	files := TLSFiles{folder + "/cert", folder + "/key", folder + "/ca"}
	signer.WritePair(signer.Sign(&x509.Certificate{DNSNames: []string{"sidecar.test"}}), files.Certificate, files.Key)
	signer.WriteCertificate(files.ClientCA)
	var good [3][]byte
	for i, name := range []string{files.Certificate, files.Key, files.ClientCA} {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		good[i] = content
	}
	f.Add(good[0], good[1], good[2])
	f.Add(good[0], good[1], []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Add(good[0], good[2], good[1])
	f.Add(append(good[2], good[0]...), good[1], append([]byte("x"), good[2]...))
	f.Fuzz(func(t *testing.T, certificate, key, authorities []byte) {
		config, err := files.load([][]byte{certificate, key, authorities}, nil)
		if err != nil {
			if !strings.HasPrefix(err.Error(), folder) {
				t.Errorf("%v: names no file", err)
			}
			return
		}
		if len(config.Certificates) != 1 || config.ClientCAs.Equal(x509.NewCertPool()) {
			t.Error("taken over without a certificate, or without an authority")
		}
	})
}

// Whatever --listen says, only a Unix socket has an identity of its own, and that is one that a policy can name.
func FuzzListenAddresses(f *testing.F) {
	for _, seed := range []string{
		"unix:///run/a.sock", "unix:///run/a.sock?identity=app", "127.0.0.1:0?identity=app", "unix:///a?identity=a/b", "unix:///a?b?identity=c",
		"?", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, err := parsePlace(text)
		if err != nil || found.identity == "" {
			return
		}
		name, isSocket := strings.CutPrefix(found.identity, policy.Socket)
		if !isSocket || !policy.IsSocketName(name) || !strings.HasPrefix(found.address, unixScheme) || strings.Contains(found.address, "?") {
			t.Errorf("%q is %+v", text, found)
		}
	})
}
