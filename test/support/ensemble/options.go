package ensemble

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// Options say what ensemble to start. The zero value is three servers with ZooKeeper's usual settings.
type Options struct {
	// Servers is how many there are: 3, the default, or 1, a standalone server.
	Servers int
	// TickTime is ZooKeeper's unit of time. The default is 2 s. Session timeouts lie between 2 and 20 ticks unless
	// MinSessionTimeout and MaxSessionTimeout say otherwise.
	TickTime time.Duration
	// InitLimit and SyncLimit are how many ticks a follower may take to join its leader, and to answer it. The defaults are
	// 10 and 5.
	InitLimit, SyncLimit int
	// MaxClientConnections is how many connections a server takes from one address, which all clients here share. 0 means
	// ZooKeeper's default of 60, a negative number no limit.
	MaxClientConnections int
	// MinSessionTimeout and MaxSessionTimeout bound what session timeouts clients get; 0 means ZooKeeper's default.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// ContainerCheck is how often empty containers and TTL nodes that are due are deleted; 0 means ZooKeeper's default of
	// one minute.
	ContainerCheck time.Duration
	// DirectPeers lets servers dial each other past the links, for measurements: what they say to each other can then not be cut, and
	// the start takes an InitLimit longer where a follower is faster than its leader.
	DirectPeers bool
	// Reconfigurable allows reconfigurations, for which servers need one list of all and dial each other past the links, as with
	// DirectPeers; see [Ensemble.Add]. Access control lists then do not count.
	Reconfigurable bool
	// TLS, if set, makes ClientAddresses speak TLS.
	TLS *TLS
	// ClientPorts are the ports of ClientAddresses on 127.0.0.1. The default, also for an entry of 0, is the system's choice.
	ClientPorts []int
	// Clocks is how far the wall clock of each server is ahead; none for the machine's. It takes libfaketime.
	Clocks []time.Duration
	// Config is lines added to each server's zoo.cfg.
	Config []string
	// JVM is flags added to those of each server's Java virtual machine.
	JVM []string
	// Dir is where data and logs are kept, and left when the ensemble is closed. The default is a temporary directory,
	// which is removed.
	Dir string
	// LogTo, if set, is written what the servers log, line by line, beside the files that it is in anyway.
	LogTo io.Writer
}

// TLS is what servers prove themselves with and ask of clients. The files are PEM. It takes jars that a server without it
// does without, and that the system's own ZooKeeper may lack.
type TLS struct {
	// KeyStore holds the servers' private key (PKCS #8) and certificate chain. The certificate must be valid for
	// 127.0.0.1, and Java wants it to have a subject.
	KeyStore string
	// TrustStore holds the authorities clients' certificates must come from.
	TrustStore string
	// ClientAuthentication is need, want or none. The default is ZooKeeper's, need.
	ClientAuthentication string
}

// complete fills in defaults.
func (o Options) complete() (Options, error) {
	if o.Servers == 0 {
		o.Servers = 3
	}
	if o.Servers != 1 && o.Servers != 3 {
		return o, fmt.Errorf("an ensemble has 1 or 3 servers, not %d", o.Servers)
	}
	o.DirectPeers = o.DirectPeers || o.Reconfigurable
	if o.TickTime == 0 {
		o.TickTime = 2 * time.Second
	}
	if o.InitLimit == 0 {
		o.InitLimit = 10
	}
	if o.SyncLimit == 0 {
		o.SyncLimit = 5
	}
	return o, nil
}

// clientPort is the port of a server's client link, 0 if the system is to choose.
func (o Options) clientPort(id int) int {
	if id > len(o.ClientPorts) {
		return 0
	}
	return o.ClientPorts[id-1]
}

// config is the zoo.cfg of a server.
func (o Options) config(s *Server) string {
	lines := []string{
		"dataDir=" + s.directory,
		"clientPortAddress=127.0.0.1",
		"clientPort=" + s.ports.client.text(),
		fmt.Sprintf("tickTime=%d", o.TickTime.Milliseconds()),
		fmt.Sprintf("initLimit=%d", o.InitLimit),
		fmt.Sprintf("syncLimit=%d", o.SyncLimit),
		"admin.enableServer=false",
		"4lw.commands.whitelist=*",
		"reconfigEnabled=false",
		"extendedTypesEnabled=true",
		"forceSync=no",     // the machine does not lose power in a test
		"preAllocSize=256", // KiB of transaction log; the default of 64 MiB is slow to write
	}
	if o.Reconfigurable {
		lines = append(lines, "reconfigEnabled=true", "standaloneEnabled=false", "skipACL=yes")
	}
	lines = append(lines, o.limits()...)
	lines = append(lines, o.TLS.config(s)...)
	lines = append(lines, s.ensemble.members(s)...)
	lines = append(lines, o.Config...)
	return strings.Join(lines, "\n") + "\n"
}

// limits is the lines for what has no default here.
func (o Options) limits() []string {
	var lines []string
	if o.MaxClientConnections != 0 {
		lines = append(lines, fmt.Sprintf("maxClientCnxns=%d", max(0, o.MaxClientConnections)))
	}
	if o.MinSessionTimeout != 0 {
		lines = append(lines, fmt.Sprintf("minSessionTimeout=%d", o.MinSessionTimeout.Milliseconds()))
	}
	if o.MaxSessionTimeout != 0 {
		lines = append(lines, fmt.Sprintf("maxSessionTimeout=%d", o.MaxSessionTimeout.Milliseconds()))
	}
	return lines
}

// config is the lines for TLS. There may be none.
func (t *TLS) config(s *Server) []string {
	if t == nil {
		return nil
	}
	lines := []string{
		"secureClientPortAddress=127.0.0.1",
		"secureClientPort=" + s.ports.secure.text(),
		"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.type=PEM",
		"ssl.keyStore.location=" + t.KeyStore,
		"ssl.trustStore.type=PEM",
		"ssl.trustStore.location=" + t.TrustStore,
	}
	if t.ClientAuthentication != "" {
		lines = append(lines, "ssl.clientAuth="+t.ClientAuthentication)
	}
	return lines
}

// flags is the arguments of a server's Java virtual machine.
func (o Options) flags(s *Server, classPath string) []string {
	flags := []string{
		"-Xmx96m", "-XX:+ExitOnOutOfMemoryError",
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", // start sooner
		"-Djavax.net.ssl.trustStore=NONE", // read at every start and used by nothing here
		"-Djava.net.preferIPv4Stack=true",
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn", // or every question is logged
		// Servers that have not found a leader ask again after twice as long each time. The default of a minute at most makes
		// it a matter of luck when an ensemble that was cut for a while is back.
		"-Dzookeeper.fastleader.maxNotificationInterval=1000",
	}
	if o.ContainerCheck != 0 {
		flags = append(flags, fmt.Sprintf("-Dznode.container.checkIntervalMs=%d", o.ContainerCheck.Milliseconds()))
	}
	flags = append(flags, o.JVM...)
	return append(flags, "-cp", classPath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.directory, "zoo.cfg"))
}
