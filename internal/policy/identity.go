package policy

import (
	"strings"
)

// What identities begin with, by how their callers are known.
const (
	User        = "uid:"      // the user at the other end of a Unix socket
	Socket      = "socket:"   // the Unix socket itself, which is one caller's
	SPIFFE      = "spiffe://" // a certificate, by its SPIFFE id
	DNS         = "dns:"      // a certificate, by the first of its DNS names
	Certificate = "cert:"     // a certificate, by its common name
	Key         = "key:"      // a certificate without any name, by its key
	Loopback    = "tcp:loopback"
)

// longestIdentity is that of a SPIFFE id, which is the longest.
const longestIdentity = 2048

const identityForms = "uid:N, socket:NAME, spiffe://…, dns:NAME, cert:NAME, key:DIGEST or tcp:loopback"

// BrokenIdentityRule says which rule an identity breaks; it is empty for a good one.
func BrokenIdentityRule(identity string) string {
	if len(identity) > longestIdentity {
		return "at most 2048 bytes"
	}
	if strings.ContainsFunc(identity, isUnprintable) {
		return "printable ASCII"
	}
	if identity == Loopback {
		return ""
	}
	for _, form := range forms {
		if rest, ok := strings.CutPrefix(identity, form.begins); ok {
			if form.fits(rest) {
				return ""
			}
			return form.rule
		}
	}
	return "an identity is " + identityForms
}

func isUnprintable(r rune) bool { return r < ' ' || r > '~' }

// forms are what follows the beginnings of identities.
var forms = []struct {
	begins string
	fits   func(rest string) bool
	rule   string
}{
	{User, isNumber, "a number follows uid:"},
	{Socket, IsSocketName, SocketNameRule},
	{SPIFFE, isSPIFFE, "a trust domain and a path follow spiffe://, without . or .. or empty segments"},
	{DNS, isHost, "a host name in lower case follows dns:"},
	{Certificate, func(rest string) bool { return strings.TrimSpace(rest) == rest && rest != "" }, "a common name follows cert:"},
	{Key, isDigest, "32 hexadecimal digits in lower case follow key:"},
}

const digits = "0123456789"

func isNumber(text string) bool {
	return text != "" && len(text) <= 10 && strings.Trim(text, digits) == "" && (text == "0" || text[0] != '0')
}

func isDigest(text string) bool { return len(text) == 32 && strings.Trim(text, digits+"abcdef") == "" }

// SocketNameRule is the rule of a Unix socket's own identity.
const SocketNameRule = "a name of 1 to 64 letters, digits and . _ -"

// IsSocketName says whether a Unix socket can have this identity of its own.
func IsSocketName(text string) bool {
	return text != "" && len(text) <= 64 && !strings.ContainsFunc(text, isNoWord)
}

// isSPIFFE checks what follows spiffe:// as the SPIFFE standard has it: no port, user, query or fragment.
func isSPIFFE(rest string) bool {
	domain, path, hasPath := strings.Cut(rest, "/")
	if domain == "" || len(domain) > 255 || strings.ContainsFunc(domain, isNoDomain) {
		return false
	}
	if !hasPath {
		return true
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsFunc(segment, isNoWord) {
			return false
		}
	}
	return true
}

func isHost(text string) bool {
	return text != "" && len(text) <= 253 && !strings.ContainsFunc(strings.TrimPrefix(text, "*."), isNoDomain)
}

func isNoDomain(r rune) bool { return isNoWord(r) || r >= 'A' && r <= 'Z' }

func isNoWord(r rune) bool {
	switch {
	case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
		return false
	}
	return true
}
