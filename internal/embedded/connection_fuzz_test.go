package embedded

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"
	"unicode/utf16"
)

// A recital is the client's end of a connection: it says all it has to say at once, and keeps what it is told.
type recital struct {
	net.Conn

	says *bytes.Reader
	mu   sync.Mutex
	told bytes.Buffer
}

func (r *recital) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (r *recital) Read(buffer []byte) (int, error) { return r.says.Read(buffer) }
func (r *recital) SetDeadline(time.Time) error     { return nil }
func (r *recital) SetReadDeadline(time.Time) error { return nil }
func (r *recital) Close() error                    { return nil }
func (r *recital) Write(buffer []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told.Write(buffer)
}

// recite has the server hear a whole connection and returns what it answers.
func recite(s *Server, says []byte) []byte {
	socket := &recital{says: bytes.NewReader(says)}
	c := newConnection(s, socket)
	var flushing sync.WaitGroup
	flushing.Go(c.flush)
	c.read()
	flushing.Wait()
	return socket.told.Bytes()
}

// requested is a frame with a request.
func requested(xid int32, op opcode, body ...byte) []byte {
	out := newFrame()
	out.int32(xid)
	out.int32(int32(op))
	out.buffer = append(out.buffer, body...)
	return out.seal()
}

// greeting asks for a new session.
func greeting() []byte {
	out := newFrame()
	out.int32(0)
	out.int64(0)
	out.int32(4000)
	out.int64(0)
	out.bytes(make([]byte, passwordLength))
	return out.seal()
}

// whole fails the test unless bytes are frames, and returns how many.
func whole(t *testing.T, told []byte) (frames int) {
	t.Helper()
	for ; len(told) > 0; frames++ {
		if len(told) < 4 || int(binary.BigEndian.Uint32(told)) > len(told)-4 {
			t.Fatalf("%d bytes that are no frame: %.40x", len(told), told)
		}
		told = told[4+int(binary.BigEndian.Uint32(told)):]
	}
	return frames
}

// Whatever a client says from its first byte on, it is answered in whole frames, at most one for each request and one for each
// thing it watches, and then others are served as before.
func FuzzConnections(f *testing.F) {
	root := []byte{0, 0, 0, 1, '/', 1}
	session := bytes.Join([][]byte{
		greeting(), requested(1, opGetData, root...), requested(-2, opPing), requested(2, opGetChildren2, root...), requested(3, opCloseSession),
	}, nil)
	f.Add(session)
	f.Add(session[:len(session)-3])
	f.Add(session[3:])
	f.Add(append(greeting(), 0xff, 0xff, 0xff, 0xff))
	f.Add(append(greeting(), 0, 0, 0, 0))
	f.Add([]byte("ruok"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3})
	for letters := range commands {
		f.Add([]byte(letters))
	}
	e := New(Options{})
	s, err := Serve(e, ServerOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, says []byte) {
		told := recite(s, says)
		if len(says) < 4 || commands[string(says[:4])] == nil {
			requests := 1 + len(says)/8
			if frames := whole(t, told); frames > 2*requests {
				t.Errorf("%d frames in answer to %d bytes", frames, len(says))
			}
		}
		if frames := whole(t, recite(s, session)); frames != 5 {
			t.Errorf("another client got %d answers", frames)
		}
		tidy(e)
	})
}

// tidy ends what a fuzzed client has left, so that the next finds little.
func tidy(e *Ensemble) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.sessions {
		e.endSession(s, causeClosed)
	}
	if len(e.tree.nodes) > 100 {
		e.tree = newTree()
	}
}

// A transaction is carried out as a whole, or changes nothing.
func FuzzTransactions(f *testing.F) {
	all := &encoder{}
	for _, path := range []string{"/m", "/m/n", "/m"} {
		all.done(opCreate)
		all.string(path)
		all.bytes([]byte("x"))
		all.acl(open)
		all.int32(int32(Ephemeral))
	}
	all.done(opSetData)
	all.string("/m")
	all.bytes(nil)
	all.int32(0)
	all.done(opDelete)
	all.string("/m")
	all.int32(-1)
	all.endOfMulti()
	f.Add(all.buffer)
	f.Add(all.buffer[:len(all.buffer)-9])
	for _, op := range []opcode{opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opSetData, opCheck} {
		one := &encoder{}
		one.done(op)
		one.string("/one")
		one.bytes([]byte{})
		one.acl(open)
		one.int32(0)
		one.int64(1)
		one.endOfMulti()
		f.Add(one.buffer)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e := New(Options{})
		defer e.Close()
		c := fuzzed(e)
		before := e.tree.Clone()
		out := &encoder{}
		err := func() error {
			e.mu.Lock()
			defer e.mu.Unlock()
			return handleMulti(c, newDecoder(body), out)
		}()
		if refused := err != nil || hasFailed(out.buffer); refused && !sameTree(before, e.tree) {
			t.Errorf("refused with %v, %x, and something has changed", err, out.buffer)
		}
	})
}

// hasFailed says whether the reply to a multi says that it was refused: such a one begins with an error.
func hasFailed(reply []byte) bool {
	in := newDecoder(reply)
	return in.Int32() == -1 && !in.Bool()
}

func sameTree(a, b *tree) bool {
	if len(a.nodes) != len(b.nodes) {
		return false
	}
	for path, one := range a.nodes {
		other := b.nodes[path]
		if other == nil || one.stat != other.stat || !bytes.Equal(one.data, other.data) || len(one.children) != len(other.children) {
			return false
		}
	}
	return true
}

// What is written in jute is read as it was, and what cannot be read is not taken for anything.
func FuzzJute(f *testing.F) {
	f.Add(int32(-1), int64(1)<<62, true, []byte("data"), "text", []byte{0, 0, 0, 1, 0, 0, 0, 2})
	f.Add(int32(0), int64(-1), false, []byte(nil), "", []byte{0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, small int32, large int64, yes bool, data []byte, text string, garbage []byte) {
		out := &encoder{}
		out.int32(small)
		out.int64(large)
		out.bool(yes)
		out.bytes(data)
		out.string(text)
		out.strings([]string{text, ""})
		out.acl([]ACL{{Permissions: small, Identity: Identity{Scheme: text, ID: text}}})
		in := newDecoder(out.buffer)
		same := in.Int32() == small && in.Int64() == large && in.Bool() == yes && bytes.Equal(in.bytes(), data) && in.Text() == text
		list, acl := in.Texts(), in.acl()
		same = same && len(list) == 2 && list[0] == text && list[1] == ""
		same = same && len(acl) == 1 && acl[0] == ACL{Permissions: small, Identity: Identity{Scheme: text, ID: text}}
		if !same || in.Failed() || in.Left() > 0 {
			t.Errorf("%x is read otherwise than it was written", out.buffer)
		}
		if cut := newDecoder(out.buffer[:len(out.buffer)-1]); cut.Text() != "" || !cut.Failed() {
			cut.Texts() // must not ask for memory that the bytes cannot fill
		}
		bad := newDecoder(garbage)
		if names := bad.Texts(); len(names) > len(garbage)/4 {
			t.Errorf("%d strings in %d bytes", len(names), len(garbage))
		}
		bad = newDecoder(garbage)
		if entries := bad.acl(); len(entries) > len(garbage)/4 {
			t.Errorf("%d entries in %d bytes", len(entries), len(garbage))
		}
		if _, err := io.ReadAll(bytes.NewReader(bad.bytes())); err != nil {
			t.Error(err)
		}
	})
}

// Paths are valid here if they are for ZooKeeper, which looks at 16-bit characters.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{
		"", "/", "/a", "/a/", "//a", "/a/../b", "/.", "/...", "/\x00", "/\u0019", "/\u009f", "/\ue000", "/\ufff0", "/\U0001f600", "/\xff", "a",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if valid := validPath(path) == nil; valid != taken(path) {
			t.Errorf("%q is valid: %t", path, valid)
		}
		if parent, name := splitPath(path); path != "" && path[0] == '/' && parent+"/"+name != path {
			t.Errorf("%q is split into %q and %q", path, parent, name)
		}
	})
}

// taken is what ZooKeeper's PathUtils says of a path. Bytes that are no UTF-8 arrive there as U+FFFD.
func taken(path string) bool {
	text := utf16.Encode([]rune(path))
	if len(text) == 0 || text[0] != '/' || len(text) > 1 && text[len(text)-1] == '/' {
		return false
	}
	if len(text) == 1 {
		return true
	}
	for begin, i := 1, 1; i <= len(text); i++ {
		if i < len(text) && text[i] != '/' {
			if c := text[i]; c <= 0x1f || c >= 0x7f && c <= 0x9f || c >= 0xd800 && c <= 0xf8ff || c >= 0xfff0 {
				return false
			}
			continue
		}
		if segment := string(utf16.Decode(text[begin:i])); segment == "" || segment == "." || segment == ".." {
			return false
		}
		begin = i + 1
	}
	return true
}
