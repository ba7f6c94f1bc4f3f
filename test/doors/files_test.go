package doors

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// A shape is what stands where a file should.
type shape struct {
	name string
	put  func(path string, good []byte) error
}

const halfFile = "half a file"

// shapes are all of them. What may block for ever comes last.
var shapes = []shape{
	{halfFile, func(path string, good []byte) error { return os.WriteFile(path, good[:len(good)/2], 0o600) }},
	{"a link to /dev/zero", func(path string, _ []byte) error { return os.Symlink("/dev/zero", path) }},
	{"a directory", func(path string, _ []byte) error { return os.Mkdir(path, 0o700) }},
	{"a FIFO", func(path string, _ []byte) error { return syscall.Mkfifo(path, 0o600) }},
}

// place moves a shape to where a file was.
func (h shape) place(t *testing.T, path string, good []byte) {
	t.Helper()
	expect.Must(t, os.RemoveAll(path))
	expect.Must(t, h.put(path, good))
	if h.name == halfFile {
		ago := time.Now().Add(-time.Minute) // it counts as complete
		expect.Must(t, os.Chtimes(path, ago, ago))
	}
}

// withFiles are the flags of a program of which each file is good, and where each is.
func (s *stage) withFiles(flag string) (arguments []string, paths map[string]string) {
	s.t.Helper()
	switch {
	case strings.HasPrefix(flag, "inject-webhook --kube"):
		s.authority.WriteCertificate(s.path("ca"))
		arguments = slices.Concat(s.injecting()[:4], []string{
			"--pattern=" + s.path("pattern"), "--secret=a/b", "--webhook=c", "--host=d", "--kube-api=https://127.0.0.1:1",
			"--kube-ca-file=" + s.path("ca"), "--kube-token-file=" + s.write("kube-token", token),
		})
	case strings.HasPrefix(flag, "inject-webhook"):
		arguments = s.injecting()
	default:
		s.authority.WriteCertificate(s.path("domain"))
		arguments = slices.Concat(s.serving(), s.ruled(), s.withTLS(), s.withToken(), []string{
			"--tls-trust-domain=prod.example=" + s.path("domain"), "--zookeeper-auth-file=" + s.write("auth", "user:password\nuser2:password2"),
			"--audit-log=" + s.write("audit", "lines\n"), "--state-dir=" + s.path("state"),
		})
		expect.Must(s.t, os.Mkdir(s.path("state"), 0o700))
		s.write("state/sidekeeper-state", "")
		s.write("state/0.lease", "a lease")
	}
	if strings.HasPrefix(flag, "serve --zookeeper-tls") {
		arguments = append(arguments, "--zookeeper-tls-ca="+s.path("zca"), "--zookeeper-tls-cert="+s.path("zcert"),
			"--zookeeper-tls-key="+s.path("zkey"))
		s.authority.WriteCertificate(s.path("zca"))
		s.authority.WritePair(s.sign("sidecar"), s.path("zcert"), s.path("zkey"))
	}
	if strings.HasPrefix(flag, "serve --zookeeper-sasl") {
		arguments = append(arguments, s.withSASL(flag)...)
	}
	paths = map[string]string{}
	for _, argument := range arguments[1:] {
		name, value, _ := strings.Cut(argument, "=")
		paths[arguments[0]+" "+name] = value[strings.LastIndex(value, "=")+1:]
	}
	return arguments, paths
}

// withSASL are settings of the mechanism that the flag belongs to.
func (s *stage) withSASL(flag string) []string {
	s.t.Helper()
	if strings.HasSuffix(flag, "password-file") {
		return []string{"--zookeeper-sasl=digest-md5", "--zookeeper-sasl-password-file=" + s.write("login", "user:password\n")}
	}
	keys := keytab.New()
	expect.Must(s.t, keys.AddEntry("sidekeeper", "EXAMPLE.TEST", "password", time.Now(), 1, etypeID.AES256_CTS_HMAC_SHA1_96))
	content, err := keys.Marshal()
	expect.Must(s.t, err)
	return []string{
		"--zookeeper-sasl=gssapi", "--zookeeper-sasl-principal=sidekeeper", "--zookeeper-sasl-keytab=" + s.write("keytab", string(content)),
		"--zookeeper-sasl-kerberos-config=" + s.write("krb5.conf", "[libdefaults]\n\tdefault_realm = EXAMPLE.TEST\n"),
	}
}

// A start with something else than a file is refused, or serves; it believes no half, takes no memory, and can be stopped.
func TestAStartWithOddFilesEndsOrServes(t *testing.T) {
	for _, file := range files {
		for _, odd := range shapes {
			t.Run(filepath.Join(file.flag, file.below)+": "+odd.name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t)
				arguments, paths := s.withFiles(file.flag)
				path := filepath.Join(paths[file.flag], file.below)
				good, err := os.ReadFile(path)
				if err != nil { // of a directory
					good = []byte("no directory")
				}
				odd.place(t, path, good)
				got, err := begins(launch(t, sidecarLimit, arguments...))
				if err == nil && got == taken && odd.name == halfFile && file.half == refused {
					err = errors.New("half a file is taken")
				}
				expect.Must(t, err)
			})
		}
	}
}

// begins says whether a program takes a file and serves, or refuses it and ends, and has it stop.
func begins(p *program) (outcome half, err error) {
	overdue := time.After(patient)
	for outcome == "" {
		select {
		case <-p.Exited():
			if code := p.State().ExitCode(); code != exit.Usage {
				return "", fmt.Errorf("it ends with %v: %s", p.State(), p.log.Text())
			}
			return refused, nil
		case <-overdue:
			return "", errors.Join(errors.New("it neither serves nor ends"), stops(p))
		case <-time.After(5 * time.Millisecond):
			if strings.Contains(p.out.Text(), "listening on ") {
				outcome = taken
			}
		}
	}
	if told, bytes := p.peak(); bytes > sidecarLimit && !raced {
		return "", errors.New("it takes " + told)
	}
	return outcome, stops(p)
}

// stops says so of a program that serves.
func stops(p *program) error {
	p.Send(syscall.SIGTERM)
	select {
	case <-p.Exited():
		if code := p.State().ExitCode(); code != 0 {
			return fmt.Errorf("stopped, it ends with %v: %s", p.State(), p.log.Text())
		}
		return nil
	case <-time.After(patient):
		return errors.New("SIGTERM does not end it")
	}
}
