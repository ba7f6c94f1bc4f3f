// Package kdc runs a real key distribution center of Kerberos, MIT's krb5kdc, for tests. It listens on the loopback interface, on a port that
// the system chooses, and keeps everything it has in a folder of the test.
package kdc

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/full"
	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// Realm is that of each KDC here.
const Realm = "EXAMPLE.TEST"

// A KDC is one that runs until the test ends.
type KDC struct {
	Config  string // a krb5.conf for clients of this KDC
	Address string

	t       testing.TB
	folder  string
	nursery *process.Nursery
	process *process.Process
	keytabs int
}

// programs are what it takes, where Debian puts it.
var programs = []string{"krb5kdc", "kdb5_util", "kadmin.local", "kinit"}

// Start starts a KDC. Tickets last for as long as their client wishes. More lines of [libdefaults] may be given.
func Start(t testing.TB, settings ...string) *KDC {
	t.Helper()
	full.Needs(t, "a KDC")
	for _, program := range programs {
		if _, err := find(program); err != nil {
			full.Lacks(t, "no KDC: apt-get install krb5-kdc krb5-user krb5-admin-server")
		}
	}
	k := &KDC{t: t, folder: t.TempDir(), nursery: process.NewNursery()}
	t.Cleanup(func() {
		k.process.Kill()
		k.nursery.Close()
	})
	k.Config = filepath.Join(k.folder, "krb5.conf")
	const attempts = 5 // another program may take the port between choice and start
	for range attempts {
		k.Address = freePort(t)
		k.configure(settings)
		if k.start() {
			return k
		}
	}
	log, _ := os.ReadFile(filepath.Join(k.folder, "kdc.log"))
	t.Fatalf("the KDC does not start:\n%s", log)
	return nil
}

func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + program)
}

// freePort is an address that was free just now.
func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// configure writes the settings of the KDC and of its clients.
func (k *KDC) configure(settings []string) {
	k.t.Helper()
	more := strings.Join(append([]string{""}, settings...), "\n\t")
	config := fmt.Sprintf(`[libdefaults]
	default_realm = %[1]s
	dns_lookup_kdc = false
	dns_lookup_realm = false
	rdns = false%[4]s
[realms]
	%[1]s = {
		kdc = %[2]s
	}
[logging]
	kdc = FILE:%[3]s/kdc.log
	default = FILE:%[3]s/kdc.log
`, Realm, k.Address, k.folder, more)
	own := fmt.Sprintf(`[kdcdefaults]
	kdc_listen = %[2]s
	kdc_tcp_listen = %[2]s
[realms]
	%[1]s = {
		database_name = %[3]s/principal
		key_stash_file = %[3]s/stash
		acl_file = %[3]s/acl
		max_life = 1d
		supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
	}
`, Realm, k.Address, k.folder)
	for name, content := range map[string]string{"krb5.conf": config, "kdc.conf": own} {
		if err := os.WriteFile(filepath.Join(k.folder, name), []byte(content), 0o600); err != nil {
			k.t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(k.folder, "principal")); err != nil {
		k.run("kdb5_util", "create", "-s", "-r", Realm, "-P", "master")
	}
}

// start starts the program, and says whether it serves.
func (k *KDC) start() bool {
	k.t.Helper()
	log, err := os.Create(filepath.Join(k.folder, "kdc.out"))
	if err != nil {
		k.t.Fatal(err)
	}
	command := k.command("krb5kdc", "-n", "-r", Realm)
	command.Stdout, command.Stderr = log, log
	if k.process, err = k.nursery.Start(command, log); err != nil {
		k.t.Fatal(err)
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for k.process.Running() {
		if conn, err := (&net.Dialer{}).DialContext(k.t.Context(), "tcp", k.Address); err == nil {
			conn.Close()
			return k.process.Running()
		}
		<-ticker.C
	}
	return false
}

// Freeze has the KDC answer nothing until Continue.
func (k *KDC) Freeze() { k.process.Freeze() }

// Continue ends Freeze.
func (k *KDC) Continue() { k.process.Continue() }

// Stop ends the KDC, whose port then refuses connections.
func (k *KDC) Stop() { k.process.Kill() }

// Add makes principals with random keys, and returns the path of a new keytab that holds them. The keys of those that were there change.
func (k *KDC) Add(principals ...string) string {
	k.t.Helper()
	k.keytabs++
	keytab := filepath.Join(k.folder, fmt.Sprintf("%d.keytab", k.keytabs))
	var lines bytes.Buffer
	for _, principal := range principals {
		fmt.Fprintf(&lines, "addprinc -randkey %[1]s\nktadd -k %[2]s %[1]s\n", principal, keytab)
	}
	command := k.command("kadmin.local", "-r", Realm)
	command.Stdin = &lines
	k.finish(command)
	if _, err := os.Stat(keytab); err != nil {
		k.t.Fatal(err)
	}
	return keytab
}

// Login has kinit put a ticket into a new credential cache, which it returns for KRB5CCNAME. The ticket lasts for so long.
func (k *KDC) Login(principal, keytab string, life time.Duration) string {
	k.t.Helper()
	k.keytabs++
	cache := filepath.Join(k.folder, fmt.Sprintf("%d.cache", k.keytabs))
	k.run("kinit", "-l", fmt.Sprintf("%ds", int(life.Seconds())), "-k", "-t", keytab, "-c", cache, principal)
	return cache
}

// Logins is how many tickets the KDC has issued with which others are asked for.
func (k *KDC) Logins() int {
	k.t.Helper()
	log, err := os.ReadFile(filepath.Join(k.folder, "kdc.log"))
	if err != nil {
		k.t.Fatal(err)
	}
	logins := 0
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "AS_REQ") && strings.Contains(line, "ISSUE") {
			logins++
		}
	}
	return logins
}

func (k *KDC) run(program string, arguments ...string) {
	k.t.Helper()
	k.finish(k.command(program, arguments...))
}

func (k *KDC) finish(command *exec.Cmd) {
	k.t.Helper()
	if output, err := command.CombinedOutput(); err != nil {
		k.t.Fatalf("%s: %v: %s", command, err, output)
	}
}

func (k *KDC) command(program string, arguments ...string) *exec.Cmd {
	k.t.Helper()
	path, err := find(program)
	if err != nil {
		k.t.Fatal(err)
	}
	command := exec.Command(path, arguments...) //nolint:gosec,noctx // the tests' own, which its nursery ends
	command.Env = append(os.Environ(), "KRB5_CONFIG="+k.Config, "KRB5_KDC_PROFILE="+filepath.Join(k.folder, "kdc.conf"))
	return command
}

// ServerLogin is the flags of a Java virtual machine with which a server of ZooKeeper is this principal of the keytab, and a folder for the
// file that they name.
func (k *KDC) ServerLogin(principal, keytab string) []string {
	k.t.Helper()
	k.keytabs++
	file := filepath.Join(k.folder, fmt.Sprintf("%d.jaas", k.keytabs))
	text := fmt.Sprintf(`Server {
	com.sun.security.auth.module.Krb5LoginModule required
	useKeyTab=true keyTab=%q storeKey=true useTicketCache=false principal=%q;
};
`, keytab, principal)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return []string{"-Djava.security.auth.login.config=" + file, "-Djava.security.krb5.conf=" + k.Config}
}
