package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/ownpages"
	"github.com/sidekeeper/sidekeeper/internal/policy"
)

const (
	unixScheme        = "unix://"
	directoryMode     = 0o750
	operatorMode      = 0o600
	longestSocketPath = 107 // bytes; the kernel's sun_path less its closing zero
)

// A place is where callers are served, and who they are if the place alone tells it.
type place struct {
	address  string
	identity string // of all who call there; empty if each is known by itself
}

// parsePlace takes an address of --listen apart.
func parsePlace(text string) (place, error) {
	address, query, found := strings.Cut(text, "?")
	if !found {
		return place{address: address}, nil
	}
	called, ok := strings.CutPrefix(query, "identity=")
	switch {
	case !strings.HasPrefix(address, unixScheme):
		return place{}, errors.New("only a Unix socket has an identity of its own: unix:///path?identity=NAME")
	case !ok:
		return place{}, fmt.Errorf("?%s: only ?identity=NAME may follow the path", query)
	case !policy.IsSocketName(called):
		return place{}, fmt.Errorf("identity is %.64q: %s", called, policy.SocketNameRule)
	}
	return place{address, policy.Socket + called}, nil
}

// IsForOne says whether all who call at these addresses have the same identity.
func IsForOne(addresses []string, files TLSFiles) bool {
	identities := map[string]bool{}
	for _, address := range addresses {
		at, err := parsePlace(address)
		switch {
		case err != nil:
			return false
		case at.identity != "":
			identities[at.identity] = true
		case strings.HasPrefix(at.address, unixScheme), files != TLSFiles{}:
			return false
		default:
			identities[policy.Loopback] = true
		}
	}
	return len(identities) == 1
}

// listen opens one listener. A Unix socket gets its mode before anybody can connect to it; TCP is for loopback only,
// unless anyAddress says otherwise, as where callers show a certificate.
func listen(address string, mode fs.FileMode, anyAddress bool) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, unixScheme); ok {
		return listenUnix(path, mode)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.New("an address is unix:///path, or host:port")
	}
	if !anyAddress && !ownpages.IsLoopback(host) {
		return nil, errors.New("without --tls-cert, --tls-key and --tls-client-ca only Unix sockets and loopback addresses are served")
	}
	if host == "localhost" { // whatever the resolver says
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// listenLoopback opens a listener for this machine only; a Unix socket is for root and the sidecar's user alone.
func listenLoopback(address string) (net.Listener, error) {
	if strings.HasPrefix(address, unixScheme) {
		return listen(address, operatorMode, false)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || !ownpages.IsLoopback(host) {
		return nil, errors.New("this listener is for a loopback host:port or a Unix socket only")
	}
	return listen(address, 0, false)
}

// listenUnix binds the socket in a directory that only we may enter, gives it its mode and moves it to its place, over a
// stale one if there is one.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("the path of a Unix socket is absolute: unix:///path")
	}
	if strings.Contains(path, "?") {
		return nil, errors.New("the path of a Unix socket has no ? in it; callers' sockets alone take ?identity=NAME")
	}
	if err := os.MkdirAll(filepath.Dir(path), directoryMode); err != nil {
		return nil, err
	}
	if err := checkVacant(path); err != nil {
		return nil, err
	}
	private, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	return bindUnix(filepath.Join(private, "s"), path, mode)
}

func bindUnix(private, path string, mode fs.FileMode) (net.Listener, error) {
	if longest := max(len(private), len(path)); longest > longestSocketPath {
		return nil, fmt.Errorf("the path of a Unix socket has at most %d bytes; it needs %d", longestSocketPath, longest)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: private, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // it would unlink the private name
	if err := errors.Join(os.Chmod(private, mode), os.Rename(private, path)); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &unixListener{UnixListener: listener, path: path, own: own}, nil
}

// checkVacant says whether a socket may be put at path: nothing is there, or a socket that nobody answers on.
func checkVacant(path string) error {
	found, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if found.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "unix", path)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot determine whether another process serves %s: %w", path, err)
	}
	return errors.Join(fmt.Errorf("another process already serves %s", path), conn.Close())
}

// A unixListener knows the name it was moved to, and takes that away with it unless it is somebody else's by then.
type unixListener struct {
	*net.UnixListener
	path string
	own  os.FileInfo
}

func (l *unixListener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

func (l *unixListener) Close() error {
	if there, err := os.Lstat(l.path); err == nil && os.SameFile(there, l.own) {
		if err := os.Remove(l.path); err != nil {
			return errors.Join(err, l.UnixListener.Close())
		}
	}
	return l.UnixListener.Close()
}

// addressOf is where a listener listens, in the words of --listen.
func addressOf(listener net.Listener) string {
	if listener.Addr().Network() == "unix" {
		return unixScheme + listener.Addr().String()
	}
	return listener.Addr().String()
}

// listenOperators opens the operators' listener. It is a Unix socket, since nothing else tells who is on the other end
// without being told.
func listenOperators(address string) (net.Listener, error) {
	if !strings.HasPrefix(address, unixScheme) {
		return nil, errors.New("operators are served on a Unix socket only: unix:///path")
	}
	return listen(address, operatorMode, false)
}
