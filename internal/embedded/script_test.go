package embedded

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A script is run by some clients of one server. Each of its lines is a client's number, a verb and arguments:
// "1 create /a data e". The clients connect when they are first named.
type script struct {
	t       *testing.T
	address string
	show    *display
	clients map[string]*rawClient
}

func newScript(t *testing.T, address, root string) *script {
	s := &script{t: t, address: address, clients: map[string]*rawClient{}}
	s.show = &display{root: "", sessions: map[int64]string{}}
	s.run("0 create " + root + " -")
	s.show.root = root
	s.show.base = s.clients["0"].zxid
	return s
}

// close closes all sessions, also of those who were cut off: one that expired later would write into another script's count.
func (s *script) close() {
	for _, name := range slices.Sorted(maps.Keys(s.clients)) { // the same on every server
		c := s.clients[name]
		_ = c.socket.Close()
		if c.session != 0 {
			s.connect(name, []string{"session=" + name})
			s.clients[name].call(request{op: opCloseSession})
			_ = s.clients[name].socket.Close()
		}
	}
}

// run does one line and gives what the client heard, a line each.
func (s *script) run(line string) string {
	words := strings.Fields(line)
	name, verb, arguments := words[0], words[1], words[2:]
	if verb == "connect" {
		return s.connect(name, arguments)
	}
	c := s.clients[name]
	if c == nil {
		s.connect(name, nil)
		c = s.clients[name]
	}
	switch verb {
	case "cut":
		_ = c.socket.Close()
		return "ok"
	case "close":
		return c.call(request{op: opCloseSession})
	case "listen": // a server that closes a connection may still answer what it reads before
		return c.await(0, nil)
	}
	return c.call(s.request(verb, arguments))
}

// connect understands timeout=…, old (without the read-only flag), session=CLIENT and password=wrong.
func (s *script) connect(name string, arguments []string) string {
	timeout, session, password, readOnly := int32(15000), int64(0), make([]byte, passwordLength), true
	for _, argument := range arguments {
		key, value, _ := strings.Cut(argument, "=")
		switch key {
		case "timeout":
			timeout = number(value)
		case "old":
			readOnly = false
		case "session":
			if s.clients[value] == nil {
				return "not connected"
			}
			session, password = s.clients[value].session, s.clients[value].password
		case "password":
			password = []byte("0123456789abcdef")
		}
	}
	c := &rawClient{t: s.t, show: s.show}
	answer := c.connect(s.address, timeout, session, password, readOnly)
	s.clients[name] = c
	if _, known := s.show.sessions[c.session]; !known && c.session != 0 {
		s.show.sessions[c.session] = "s" + name
	}
	return answer
}

func number(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("number in a script: %v", err))
	}
	return int32(n)
}

// argument gives the argument at i or what is to be taken instead.
func argument(arguments []string, i int, otherwise string) string {
	if i < len(arguments) {
		return arguments[i]
	}
	return otherwise
}

var modes = map[string]Mode{
	"p": Persistent, "e": Ephemeral, "ps": PersistentSequential, "es": EphemeralSequential,
	"c": Container, "t": TTL, "ts": TTLSequential, "bad": 17,
}

// data reads "-" as no data and "”" as empty data.
func data(text string) []byte {
	switch {
	case text == "-":
		return nil
	case text == "''":
		return []byte{}
	case strings.HasPrefix(text, "x*"):
		return []byte(strings.Repeat("x", int(number(text[2:]))))
	}
	return []byte(text)
}

// list reads "perms:scheme:id" entries with commas between them; "open" is everything for everybody.
func list(text string) []ACL {
	switch text {
	case "open":
		return open
	case "none":
		return nil
	}
	var entries []ACL
	for entry := range strings.SplitSeq(text, ",") {
		parts := strings.SplitN(entry, ":", 3)
		entries = append(entries, ACL{
			Permissions: number(parts[0]), Identity: Identity{Scheme: parts[1], ID: parts[2]},
		})
	}
	return entries
}

var ops = map[string]opcode{
	"create": opCreate, "create2": opCreate2, "container": opCreateContainer, "ttl": opCreateTTL,
	"delete": opDelete, "deletecontainer": opDeleteContainer, "set": opSetData, "setacl": opSetACL,
	"check": opCheck, "exists": opExists, "get": opGetData, "children": opGetChildren, "children2": opGetChildren2,
	"getacl": opGetACL, "count": opGetAllChildrenNumber, "ephemerals": opGetEphemerals, "sync": opSync,
	"whoami": opWhoAmI, "ping": opPing, "auth": opAuth, "setwatches": opSetWatches, "setwatches2": opSetWatches2,
	"addwatch": opAddWatch, "checkwatches": opCheckWatches, "removewatches": opRemoveWatches,
	"multi": opMulti, "multiread": opMultiRead, "reconfig": opReconfig,
}

// request makes what is sent for a verb.
func (s *script) request(verb string, arguments []string) request {
	r := request{op: ops[verb]}
	out := &r.body
	path := s.show.full(argument(arguments, 0, ""))
	switch verb {
	case "create", "create2", "container", "ttl", "delete", "set", "check", "get", "children":
		s.encode(out, verb, arguments)
		r.show = s.shower(r.op)
	case "exists", "children2":
		s.encode(out, "get", arguments)
		r.show = s.shower(r.op)
	case "deletecontainer":
		out.string(path)
	case "getacl", "count", "ephemerals", "sync":
		out.string(path)
		r.show = s.shower(r.op)
	case "setacl":
		out.string(path)
		out.acl(list(arguments[1]))
		out.int32(number(argument(arguments, 2, "-1")))
		r.show = s.show.stat
	case "whoami":
		r.show = s.shower(r.op)
	case "ping":
		r.xid = xidPing
	case "auth":
		r.xid = -4
		out.int32(0)
		out.string(arguments[0])
		out.bytes([]byte(arguments[1]))
	case "setwatches", "setwatches2":
		r.xid = -8
		s.encodeWatches(out, arguments)
	case "addwatch", "checkwatches", "removewatches":
		out.string(path)
		out.int32(number(arguments[1]))
		if verb == "addwatch" {
			r.show = func(in *decoder) string { return fmt.Sprint("ok ", in.Int32()) }
		}
	case "multi", "multiread":
		s.encodeSteps(out, arguments)
		r.show = s.steps
	case "reconfig":
		for range 3 {
			out.string("")
		}
		out.int64(-1)
	case "raw":
		r.op = opcode(number(arguments[0]))
		out.buffer, _ = hex.DecodeString(argument(arguments, 1, ""))
	default:
		panic("verb " + verb)
	}
	return r
}

// encode writes the requests that may also stand in a multi.
func (s *script) encode(out *encoder, verb string, arguments []string) {
	out.string(s.show.full(argument(arguments, 0, "")))
	switch verb {
	case "create", "create2", "container", "ttl":
		otherwise := map[string]string{"container": "c", "ttl": "t"}
		out.bytes(data(argument(arguments, 1, "-")))
		out.acl(list(argument(arguments, 3, "open")))
		out.int32(int32(modes[argument(arguments, 2, max(otherwise[verb], "p"))]))
		if verb == "ttl" {
			out.int64(int64(number(argument(arguments, 4, "60000"))))
		}
	case "delete", "check":
		out.int32(number(argument(arguments, 1, "-1")))
	case "set":
		out.bytes(data(arguments[1]))
		out.int32(number(argument(arguments, 2, "-1")))
	case "get", "children":
		out.bool(argument(arguments, 1, "") == "watch")
	}
}

// encodeSteps writes operations with ";" between them.
func (s *script) encodeSteps(out *encoder, arguments []string) {
	for step := range strings.SplitSeq(strings.Join(arguments, " "), ";") {
		words := strings.Fields(step)
		if len(words) > 0 {
			out.done(ops[words[0]])
			s.encode(out, words[0], words[1:])
		}
	}
	out.endOfMulti()
}

// encodeWatches reads "seen=n data=/a,/b exist=… child=… stay=… recursive=…".
func (s *script) encodeWatches(out *encoder, arguments []string) {
	keys := []string{"data", "exist", "child", "stay", "recursive"}
	if !slices.ContainsFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "stay") }) {
		keys = keys[:3]
	}
	values := map[string]string{}
	for _, argument := range arguments {
		key, value, _ := strings.Cut(argument, "=")
		values[key] = value
	}
	out.int64(s.show.base + int64(number(values["seen"])))
	for _, key := range keys {
		var paths []string
		for path := range strings.SplitSeq(values[key], ",") {
			if path != "" {
				paths = append(paths, s.show.full(path))
			}
		}
		out.strings(paths)
	}
}
