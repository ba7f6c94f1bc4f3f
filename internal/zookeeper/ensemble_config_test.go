package zookeeper

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestAnEnsemblesListOfItsServersIsRead(t *testing.T) {
	const version = "\nversion=100000003"
	for name, c := range map[string]struct {
		data   string
		given  string
		secure bool
		want   string // the addresses, or how the error begins
	}{
		"three servers": {
			data: "server.1=zk1:2888:3888:participant;zk1:2181\nserver.2=zk2:2888:3888:participant;zk2:2182\n" +
				"server.3=10.0.0.3:2888:3888:observer;10.0.0.3:2181" + version,
			want: "10.0.0.3:2181 zk1:2181 zk2:2182",
		},
		"no role":                   {data: "server.1=zk1:2888:3888;zk1:2181" + version, want: "zk1:2181"},
		"a client's host":           {data: "server.1=zk1:2888:3888;clients.zk1:2181" + version, want: "clients.zk1:2181"},
		"every address of a server": {data: "server.1=zk1:2888:3888:participant;0.0.0.0:2181" + version, want: "zk1:2181"},
		"every address, IPv6":       {data: "server.1=zk1:2888:3888;[::]:2181" + version, want: "zk1:2181"},
		"every address, at length":  {data: "server.1=zk1:2888:3888;[0:0:0:0:0:0:0:0]:2181" + version, want: "zk1:2181"},
		"a port alone":              {data: "server.1=zk1:2888:3888;2181" + version, want: "zk1:2181"},
		"IPv6":                      {data: "server.1=[fd00::1]:2888:3888;[fd00::2]:2181" + version, want: "[fd00::2]:2181"},
		"several networks": {
			data: "server.1=a1:2888:3888|b1:2889:3889:participant;0.0.0.0:2181" + version, want: "a1:2181 b1:2181",
		},
		"groups and weights": {data: "server.1=zk1:1:2;3\ngroup.1=1\nweight.1=1\n\n" + version, want: "zk1:3"},
		"a port for TLS":     {data: "server.1=zk1:2888:3888;zk1:2181;zk1:2281" + version, want: "zk1:2181"},
		"a port for TLS, with TLS": {
			data: "server.1=zk1:2888:3888;zk1:2181;zk1:2281" + version, given: "zk9:2290", secure: true, want: "zk1:2181 zk1:2281",
		},
		"no port for TLS, with TLS": {
			data: "server.1=zk1:2888:3888;10.0.0.1:2181\nserver.2=zk2:2888:3888" + version, given: "zk1:2281 zk2:2281", secure: true,
			want: "10.0.0.1:2181 10.0.0.1:2281 zk2:2281",
		},
		"no port for TLS, and none in common": {
			data: "server.1=zk1:2888:3888" + version, given: "zk1:2281 zk2:2282", secure: true, want: ErrPartServerList.Error(),
		},

		"standalone": {data: "", want: ErrNoServerList.Error()},
		"no client address": {
			data: "server.1=zk1:2888:3888;2181\nserver.2=zk2:2888:3888" + version, want: ErrPartServerList.Error() + ": that of server.2",
		},
		"no host at all":  {data: "server.1=0.0.0.0:2888:3888;2181" + version, want: ErrPartServerList.Error()},
		"no version":      {data: "server.1=zk1:2888:3888;2181", want: "1 servers and 0 versions"},
		"two versions":    {data: "server.1=zk1:2888:3888;2181" + version + version, want: "1 servers and 2 versions"},
		"no servers":      {data: version, want: "0 servers and 1 versions"},
		"no number":       {data: "version=x", want: `line "version=x"`},
		"no line of it":   {data: "<html>", want: `line "<html>": want name=value`},
		"an id twice":     {data: "server.1=zk1:1:2;3\nserver.01=zk1:1:2;3" + version, want: `line "server.01=`},
		"a negative id":   {data: "server.-1=zk1:1:2;3" + version, want: `line "server.-1=`},
		"no peer":         {data: "server.1=" + version, want: `line "server.1="`},
		"a peer's port":   {data: "server.1=zk1:2888:0;3" + version, want: `line "server.1=`},
		"port 0":          {data: "server.1=zk1:1:2;0" + version, want: `line "server.1=`},
		"port 65536":      {data: "server.1=zk1:1:2;zk1:65536" + version, want: `line "server.1=`},
		"a path":          {data: "server.1=zk1:1:2;zk1:2181/x" + version, want: `line "server.1=`},
		"a user":          {data: "server.1=zk1:1:2;me@zk1:2181" + version, want: `line "server.1=`},
		"an open bracket": {data: "server.1=zk1:1:2;[::1:2181" + version, want: `line "server.1=`},
		"a long name":     {data: "server.1=zk1:1:2;" + strings.Repeat("x", 254) + ":2181" + version, want: `line "server.1=`},
		"many hosts":      {data: "server.1=" + strings.Repeat("zk1:1:2|", 17) + "zk1:1:2;3" + version, want: `line "server.1=`},
		"many servers":    {data: manyServers(257) + version, want: "257 servers and 1 versions"},
	} {
		t.Run(name, func(t *testing.T) {
			given := append(strings.Fields(c.given), "zk9:2181")[:max(1, len(strings.Fields(c.given)))]
			config, err := ParseEnsembleConfig([]byte(c.data), given, c.secure)
			got := strings.Join(config.Addresses(), " ")
			if err != nil {
				got = err.Error()
			}
			if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%s, not %s", got, c.want)
			}
		})
	}
}

func manyServers(n int) string {
	var text strings.Builder
	for id := range n {
		text.WriteString("server." + string(rune('0'+id/100)) + string(rune('0'+id/10%10)) + string(rune('0'+id%10)) + "=zk:1:2;3\n")
	}
	return text.String()
}

// What is read from a node that somebody may write to is either refused or addresses that can be dialled.
func FuzzEnsembleConfig(f *testing.F) {
	f.Add("server.1=zk1:2888:3888:participant;0.0.0.0:2181\nversion=1", true)
	f.Add("server.1=[fd00::1]:2888:3888|b:1:2:observer;[::]:2181;[fd00::2]:2281\nversion=100000000", false)
	f.Add("server.1=zk1:2888:3888\n\nversion=0", true)
	f.Add("server.1="+strings.Repeat("[x", 10000), true)
	f.Add("version="+strings.Repeat("x", 10000), true)
	f.Fuzz(func(t *testing.T, data string, secure bool) {
		config, err := ParseEnsembleConfig([]byte(data), []string{"given:2281"}, secure)
		if err != nil {
			if err.Error() == "" || len(err.Error()) > 2000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if errors.Is(err, ErrNoServerList) || len(config.Servers) == 0 {
			t.Error("no servers, and no error")
		}
		for id, addresses := range config.Servers {
			if len(addresses) == 0 {
				t.Errorf("server %d has no address", id)
			}
		}
		for _, address := range config.Addresses() {
			if host, port, err := net.SplitHostPort(address); err != nil || host == "" || isWildcard(host) || !isPort(port) {
				t.Errorf("address %q: %v", address, err)
			}
		}
	})
}
