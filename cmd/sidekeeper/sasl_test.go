package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/exit"
)

func TestSettingsOfSASLThatDoNotGoTogetherAreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	replaceFile(t, folder+"/krb5.conf", "[libdefaults]\n\tdefault_realm = EXAMPLE.TEST\n")
	replaceFile(t, folder+"/keytab", "no keytab")
	replaceFile(t, folder+"/two", "a:b\nc:d\n")
	replaceFile(t, folder+"/empty", "a:\n")
	for args, want := range map[string]string{
		"$=plain":                                  `$ is "plain": must be one of none|gssapi|digest-md5`,
		"$=digest-md5":                             "$ digest-md5: needs $-password-file",
		"$-password-file=/f":                       "$-password-file /f: needs $ digest-md5",
		"$-keytab=/f":                              "$-keytab /f: needs $-principal",
		"$-principal=a":                            "$-principal a: needs $ gssapi",
		"$-kerberos-config=/f":                     "$-kerberos-config /f: needs $ gssapi",
		"$-service=zk":                             "$-service zk: needs $ gssapi",
		"$=gssapi $-service=a/":                    "$-service a/: a principal is NAME or NAME/HOST",
		"$=gssapi $-service=zookeeper/_HOST@R":     "$-service zookeeper/_HOST@R: instead of NAME/_HOST, give NAME",
		"$=gssapi $-principal=@R":                  "$-principal @R: a principal is NAME or NAME/HOST",
		"$=gssapi $-kerberos-config=/no/such/file": "$ gssapi: open /no/such/file",
		"$=gssapi $-kerberos-config=F/krb5.conf $-principal=a $-keytab=/no/such": "$ gssapi: open /no/such: ",
		"$=gssapi $-kerberos-config=F/krb5.conf $-principal=a $-keytab=F/keytab": "$ gssapi: F/keytab: ",
		"$=digest-md5 $-password-file=F/empty":                                   "$-password-file: F/empty: one line with user:password",
		"$=digest-md5 $-password-file=F/two":                                     "$-password-file: F/two: one line with user:password",
	} {
		names := strings.NewReplacer("$", "--zookeeper-sasl", "F/", folder+"/")
		args, want := names.Replace(args), names.Replace(want)
		line := append([]string{"serve", "--listen=127.0.0.1:0", "--operator-listen=", "--zookeeper=127.0.0.1:1"}, strings.Fields(args)...)
		var out, failed bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), patience) // in case it is served
		code := run(ctx, line, strings.NewReader(""), &out, &failed)
		cancel()
		if code != exit.Usage || !strings.Contains(failed.String(), want) {
			t.Errorf("%s: exit %d, %s; want %q", args, code, failed.String(), want)
		}
	}
}

// Nodes are the user's, who therefore stays; the password may be another one.
func TestThePasswordOfSASLMayChangeAndTheUserMayNot(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/login"
	for content, want := range map[string]login{
		"a:b\n": {"a", "b"}, "a:b:c": {"a", "b:c"}, "a:\r\n": {}, "a": {}, ":b": {}, "": {}, "a:b\nc": {},
	} {
		s := saslSettings{passwordFile: file}
		if got, err := s.parseLogin([]byte(content)); got != want || (err == nil) != (want != login{}) {
			t.Errorf("%q: %v, %v", content, got, err)
		}
	}
	s := saslSettings{passwordFile: file}
	settled := func(content string) {
		replaceFile(t, file, content)
		ago := time.Now().Add(-time.Minute) // it counts as complete
		if err := os.Chtimes(file, ago, ago); err != nil {
			t.Fatal(err)
		}
	}
	settled("app:secret\n")
	kept, err := s.keepLogin(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []struct {
		content string
		want    login
	}{
		{"app:changed\n", login{"app", "changed"}}, {"other:secret\n", login{"app", "changed"}}, {"app:again\n", login{"app", "again"}},
	} {
		settled(each.content)
		if got := kept.Newest(); got != each.want {
			t.Errorf("%q: %v", each.content, got)
		}
	}
}

// The doctor warns if others can read them.
func TestTicketsOfKinitAreSecrets(t *testing.T) {
	const file = "/run/tickets"
	t.Setenv("KRB5CCNAME", "FILE:"+file)
	for args, want := range map[string]string{
		"--zookeeper-sasl=gssapi": file, "--zookeeper-sasl=gssapi --zookeeper-sasl-keytab=/k --zookeeper-sasl-principal=a": "", "": "",
	} {
		var s settings
		if err := s.flags().Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if got := s.forDoctor(doctorFlags{}).Secrets["zookeeper-sasl"]; got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
}
