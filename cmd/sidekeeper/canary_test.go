package main

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

const canaryPassword = "canary-Pa55word-of-the-ensemble"

// secrets are what nobody may read, in the ways in which it could be written.
type secrets map[string]string

func (s secrets) add(what, secret string) {
	s[what] = secret
	s[what+" in base64"] = base64.StdEncoding.EncodeToString([]byte(secret))
	s[what+" in hexadecimal"] = hex.EncodeToString([]byte(secret))
}

func (s secrets) addSession(what string, id int64) {
	s[what] = fmt.Sprint(id)
	s[what+" in hexadecimal"] = fmt.Sprintf("%x", id)
	s[what+" in base64"] = base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(id)))
	password := sessionPassword(id)
	s["the password of "+what] = string(password)
	s["the password of "+what+" in hexadecimal"] = hex.EncodeToString(password)
	s["the password of "+what+" in base64"] = base64.StdEncoding.EncodeToString(password)
}

// sessionPassword is how ZooKeeper computes it: java.util.Random seeded with the id and a constant.
func sessionPassword(id int64) []byte {
	const multiplier, mask = 0x5DEECE66D, 1<<48 - 1
	seed := (uint64(id^0xB3415C00) ^ multiplier) & mask
	var password []byte
	for range 4 {
		seed = (seed*multiplier + 0xB) & mask
		password = binary.LittleEndian.AppendUint32(password, uint32(seed>>16))
	}
	return password
}

// leaks are the secrets that stand in a text.
func (s secrets) leaks(text string) (leaks []string) {
	for what, secret := range s {
		if secret != "" && strings.Contains(text, secret) {
			leaks = append(leaks, what)
		}
	}
	return leaks
}

// All that can go wrong does, at the level of most detail, with credentials of every kind; and then everything that was written
// anywhere, and every answer, is searched for what must not be in it.
func TestNoSecretStandsInAnythingThatIsWrittenOrAnswered(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	memory, address := memoryEnsemble(t)
	authority := newTestAuthority(t, folder)
	authority.issue("server")
	authority.issue("client")
	if err := os.WriteFile(folder+"/auth", []byte("sidekeeper:"+canaryPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder+"/policy", []byte(`rules: [{identities: ["*"], methods: ["sidekeeper.lock.v1.LockService/*", `+
		`"sidekeeper.lease.v1.LeaseService/*", "sidekeeper.membership.v1.MembershipService/*"]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	collector := newCollector(t)
	s := serve(t, "--zookeeper="+address, "--log-level=debug", "--otlp-endpoint="+collector.endpoint,
		"--zookeeper-auth-file="+folder+"/auth", "--policy="+folder+"/policy",
		"--audit-log="+folder+"/audit", "--metrics-listen=unix://"+folder+"/metrics", "--drain-timeout=100ms", "--session-timeout=20s",
		"--tls-cert="+folder+"/server.crt", "--tls-key="+folder+"/server.key", "--tls-client-ca="+folder+"/ca.crt",
		"--listen=unix://"+folder+"/thief?identity=thief")
	owner, err := sidekeeper.Dial(s.address, sidekeeper.WithTLS(authority.clientConfig("client")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close() })
	thief, err := sidekeeper.Dial("unix://" + folder + "/thief")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { thief.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()

	hidden := secrets{}
	hidden.add("the ensemble's password", canaryPassword)
	for _, key := range []string{"server", "client"} {
		hidden["the "+key+"'s key"] = strings.Split(content(t, folder+"/"+key+".key"), "\n")[1]
	}
	lease, err := owner.OpenLease(ctx, sidekeeper.LeaseOptions{Owner: "canary"})
	if err != nil {
		t.Fatal(err)
	}
	hidden.add("a lease's id", lease.ID())
	var answers []string
	told := func(err error) {
		if err == nil {
			t.Error("something that must fail does not")
			return
		}
		answers = append(answers, fmt.Sprintf("%v %+v", err, errors.Unwrap(err)))
	}
	for name, end := range map[string]func(lock *sidekeeper.Lock, session int64){
		"released": func(lock *sidekeeper.Lock, _ int64) { _ = lock.Release(ctx) },
		"expired":  func(_ *sidekeeper.Lock, session int64) { _ = memory.Expire(session) },
		"deleted": func(_ *sidekeeper.Lock, _ int64) {
			_ = memory.Delete("/sidekeeper/locks/deleted/" + memory.Names("/sidekeeper/locks/deleted")[0])
		},
		"drained": func(*sidekeeper.Lock, int64) {},
	} {
		lock, err := owner.Acquire(ctx, name, sidekeeper.LockOptions{Owner: "canary"})
		if err != nil {
			t.Fatal(err)
		}
		hidden.add("the id of a hold that was "+name, lock.HoldID())
		node, err := memory.Read("/sidekeeper/locks/" + name + "/" + memory.Names("/sidekeeper/locks/" + name)[0])
		if err != nil {
			t.Fatal(err)
		}
		hidden.addSession("the session of a hold that was "+name, node.Owner)
		end(lock, node.Owner)
		if name != "drained" {
			<-lock.Context().Done()
			answers = append(answers, fmt.Sprint(context.Cause(lock.Context())))
		}
	}
	_, err = thief.Acquire(ctx, "stolen", sidekeeper.LockOptions{Lease: lease})
	told(err)
	_, err = thief.Acquire(ctx, "bad//name", sidekeeper.LockOptions{})
	told(err)
	_, err = thief.Break(ctx, "drained", 1, sidekeeper.BreakOptions{Reason: "stuck"})
	told(err)
	_, err = thief.Config().Get(ctx, "denied")
	told(err)
	for _, change := range []struct{ file, text string }{
		{"auth", canaryPassword + " without a colon"}, {"policy", "rules: none"}, {"server.key", "no key"},
	} {
		if err := os.WriteFile(folder+"/"+change.file, []byte(change.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if other, err := owner.OpenLease(ctx, sidekeeper.LeaseOptions{}); err == nil {
		hidden.add("another lease's id", other.ID())
	}
	answers = append(answers, scrapeUnix(t, folder+"/metrics"))
	s.signal(os.Interrupt)
	if code := s.ends(); code != 0 {
		t.Errorf("exit %d; log: %s", code, s.log)
	}
	for _, happened := range []string{
		"lease opened", "lock lost", "LOCK_BROKEN", "LEASE_NOT_FOUND", "INVALID_FIELD", "POLICY_DENIED", "session ended",
	} {
		if !strings.Contains(s.log.String(), happened) {
			t.Errorf("%s has not happened", happened)
		}
	}
	if leaks := hidden.leaks("sidekeeper:" + canaryPassword + " " + lease.ID()); len(leaks) != 2 {
		t.Errorf("what is planted is not found: %v", leaks)
	}
	for what, text := range map[string]string{
		"log": s.log.String(), "audit log": content(t, folder+"/audit"), "answers": strings.Join(answers, "\n"), "traces": collector.text(),
	} {
		if len(text) < 500 {
			t.Errorf("the %s is hardly anything: %s", what, text)
		}
		for _, leak := range hidden.leaks(text) {
			t.Errorf("in the %s stands %s", what, leak)
		}
	}
}

func scrapeUnix(t *testing.T, path string) string {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	response, err := client.Get("http://sidecar/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
