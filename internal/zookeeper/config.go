package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/sasl"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// Proof is how sessions prove that they are alive.
type Proof string

// The two proofs; see the package comment.
const (
	ProofQuorum Proof = "quorum" // by transactions: safe at any timeout the heartbeat can keep up with
	ProofStatic Proof = "static" // by plain reads and the ensemble's own limits: asks for long timeouts
)

// A Config says which ensemble, and how to keep sessions with it.
type Config struct {
	Servers        []string      // host:port, resolved anew at each connection
	SessionTimeout time.Duration // of the reader, and the default for leases
	TickTime       time.Duration // as the ensemble has it
	SyncLimit      int           // as the ensemble has it
	Heartbeat      time.Duration // between heartbeats; sessions with short timeouts beat faster
	Proof          Proof         // empty: ProofQuorum
	Observers      bool          // sessions may be attached to observers behind other servers
	FollowServers  bool          // those that the ensemble lists, too; see serverList
	Sleep          bool          // sessions on which nothing stands prove nothing; see sleepState
	Directories    []string      // made if missing, for good

	Auth           func() [][]byte    // the digest credentials of now, `user:password` each; nil for none. See introduction
	TLS            func() *tls.Config // towards the ensemble, asked for at each connection; nil for none
	SASL           sasl.Identity      // who the sidecar is to servers, and has proved to it who they are; nil for none
	ACL            string             // of new nodes: empty, `creator`, `open`, or `scheme:id:permissions` joined by commas
	EphemeralBytes int                // most bytes of ephemeral paths one session may own
	Quotas         bool               // the ensemble's quotas of what lies in Directories are obeyed
	MaxChildren    int                // most children of one directory, save of locks, whose children are counted elsewhere; 0: any number

	Log     *zap.Logger
	Observe Observer // told of each request to the ensemble, or nil
	Late    func()   // told of each heartbeat that is late, or nil

	Restored func() // told when the ensemble is found to be restored from an older state, or nil
	Denied   func() // told of each request that the ensemble's access control refuses, or nil

	// The world around; nil for the real one.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Clock  func() time.Duration // goes on while the machine is suspended
	Random rand.Source          // used by many goroutines at once

	acl []zk.ACL
}

// An Observer is told of one request that was answered, or whose answer was lost, with the context of who asked for it first; the
// background for what nobody asked for.
type Observer func(ctx context.Context, operation string, took time.Duration, lost bool)

// defaultEphemeralBytes is a tenth of what stops an ensemble (ZOOKEEPER-4306).
const defaultEphemeralBytes = 256 << 10

func (c *Config) complete() error {
	if len(c.Servers) == 0 {
		return errors.New("no servers given")
	}
	for _, server := range c.Servers {
		if _, _, err := net.SplitHostPort(server); err != nil {
			return fmt.Errorf("server %q: want host:port", server)
		}
	}
	if c.Proof == "" {
		c.Proof = ProofQuorum
	}
	if c.Proof != ProofQuorum && c.Proof != ProofStatic {
		return fmt.Errorf("proof %q: want %q or %q", c.Proof, ProofQuorum, ProofStatic)
	}
	if c.TickTime <= 0 || c.SyncLimit <= 0 || c.Heartbeat <= 0 {
		return errors.New("tick time, sync limit and heartbeat must be positive")
	}
	if c.EphemeralBytes == 0 {
		c.EphemeralBytes = defaultEphemeralBytes
	}
	c.completeListeners()
	c.completeWorld()
	var err error
	if c.acl, err = c.parseACL(); err != nil {
		return err
	}
	return c.safe(c.SessionTimeout)
}

// completeListeners has nobody told where nobody is given.
func (c *Config) completeListeners() {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Observe == nil {
		c.Observe = func(context.Context, string, time.Duration, bool) {}
	}
	if c.Late == nil {
		c.Late = func() {}
	}
	if c.Restored == nil {
		c.Restored = func() {}
	}
	if c.Denied == nil {
		c.Denied = func() {}
	}
}

// completeWorld takes the real world for what is not given.
func (c *Config) completeWorld() {
	if c.Dial == nil {
		c.Dial = dialAlone
	}
	if c.Clock == nil {
		c.Clock = func() time.Duration { return time.Duration(now()) }
	}
	if c.Random == nil {
		c.Random = systemRandom{}
	}
}

// systemRandom are the runtime's random numbers.
type systemRandom struct{}

func (systemRandom) Uint64() uint64 { return rand.Uint64() }

// interval is the time between heartbeats for sessions of this timeout.
func (c *Config) interval(timeout time.Duration) time.Duration {
	return min(c.Heartbeat, timeout*2/15)
}

// proof is a fresh proof for sessions of this timeout.
func (c *Config) proof(timeout time.Duration) proof {
	p := proof{
		timeout: timeout,
		margin:  max(250*time.Millisecond, timeout/20),
		slack:   c.TickTime/2 + pingLateness,
		static:  c.Proof == ProofStatic,
	}
	if p.static {
		p.slack = time.Duration(3*c.SyncLimit+1) * c.TickTime
	}
	if c.Observers {
		p.slack += c.TickTime/2 + pingLateness
	}
	return p
}

// safe says whether sessions of this timeout can be kept proved.
func (c *Config) safe(timeout time.Duration) error {
	p := c.proof(timeout)
	if p.sustainable(c.interval(timeout)) {
		return nil
	}
	return fmt.Errorf("%w: %v with %s proof, tick time %v, sync limit %d and a heartbeat every %v; with these it takes %v",
		recipes.ErrUnsafeTimeout, timeout, c.Proof, c.TickTime, c.SyncLimit, c.interval(timeout), c.shortestSafe())
}

// parseACL reads the ACL for new nodes: with credentials the creator's alone unless told otherwise, and never the
// world's by default then.
func (c *Config) parseACL() ([]zk.ACL, error) {
	credentials := c.Auth != nil || c.SASL != nil || c.showsCertificate()
	switch {
	case c.ACL == "open", c.ACL == "" && !credentials:
		return zk.WorldACL(zk.PermAll), nil
	case c.ACL == "creator" && !credentials:
		return nil, errors.New("ACL creator: there are no credentials to tell the creator by")
	case c.ACL == "", c.ACL == "creator":
		return zk.AuthACL(zk.PermAll), nil
	}
	var acl []zk.ACL
	for entry := range strings.SplitSeq(c.ACL, ",") {
		parsed, err := parseACLEntry(strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		acl = append(acl, parsed)
	}
	if size := bytesOf(acl); size > maxACLBytes {
		return nil, fmt.Errorf("ACL of %d bytes: at most %d", size, maxACLBytes)
	}
	return acl, nil
}

// showsCertificate says whether servers learn who connects from a certificate.
func (c *Config) showsCertificate() bool {
	if c.TLS == nil {
		return false
	}
	secure := c.TLS()
	return len(secure.Certificates) > 0 || secure.GetClientCertificate != nil
}

func parseACLEntry(entry string) (zk.ACL, error) {
	scheme, rest, _ := strings.Cut(entry, ":")
	last := strings.LastIndexByte(rest, ':')
	if scheme == "" || last < 0 {
		return zk.ACL{}, fmt.Errorf("ACL %q: want scheme:id:permissions", entry)
	}
	letters := map[rune]int32{'r': zk.PermRead, 'w': zk.PermWrite, 'c': zk.PermCreate, 'd': zk.PermDelete, 'a': zk.PermAdmin}
	var permissions int32
	for _, letter := range rest[last+1:] {
		if letters[letter] == 0 {
			return zk.ACL{}, fmt.Errorf("ACL %q: permission %s is none of r, w, c, d, a", entry, strconv.QuoteRune(letter))
		}
		permissions |= letters[letter]
	}
	return zk.ACL{Scheme: scheme, ID: rest[:last], Perms: permissions}, nil
}
