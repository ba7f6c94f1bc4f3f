// Package ownpages keeps out, from what a browser may reach on this machine, pages from elsewhere and whoever has no token.
package ownpages

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Only keeps out web pages from elsewhere: those that had a name of theirs point here (the Host tells), unless any host will do, and those
// that make a browser ask. What is served runs no script but its own.
func Only(handler http.Handler, anyHost bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !anyHost && !IsLoopback(hostname(r.Host)):
			http.Error(w, "use localhost or a loopback address", http.StatusMisdirectedRequest)
			return
		case isForeign(r):
			http.Error(w, "cross-origin requests are refused", http.StatusForbidden)
			return
		}
		header := w.Header()
		header.Set("Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "+
				"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		handler.ServeHTTP(w, r)
	})
}

// isForeign says whether a page of another origin asks. Browsers say so in one header or the other; what is no browser sends neither.
func isForeign(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return true
	}
	said := r.Header.Get("Origin")
	origin, err := url.Parse(said)
	return said != "" && (err != nil || origin.Host != r.Host)
}

// WithToken keeps out whoever does not show the token, of which the digest is known, as `Authorization: Bearer …`.
func WithToken(handler http.Handler, digest func() [sha256.Size]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		want, got := digest(), sha256.Sum256([]byte(shown))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// IsLoopback says whether a host is this machine by a name or an address of its own.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hostname is the host of a Host header, without its port.
func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}
