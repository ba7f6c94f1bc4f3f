package zookeeper

import (
	"bytes"
	"context"
	"time"
)

// credentialsPause is how long new credentials may stay unnoticed while no session is opened, once their file is settled.
const credentialsPause = 2 * time.Second

// introduction is what a new session tells servers of who it is. A session keeps to the credentials it began with, on whichever
// connection, since its nodes are theirs. The reader reads the nodes of all, so it tells its server of new credentials as well, and
// before a session that has them can make a node.
func (c *Client) introduction() []byte {
	if c.config.Auth == nil {
		return nil
	}
	var frames []byte
	for _, secret := range c.config.Auth() {
		frames = append(frames, authFrame("digest", secret)...)
	}
	c.reader.introduce(frames)
	return frames
}

// introduce tells the reader's server who else it is. What it said before stands: a connection may have many identities.
func (r *reader) introduce(frames []byte) {
	v, _ := r.current()
	if v == nil { // run does it again
		return
	}
	s := v.session
	s.mu.Lock()
	known, present := bytes.Equal(s.auth, frames), s.wire
	s.auth = frames
	s.mu.Unlock()
	if !known && present != nil {
		_, _ = present.Conn.Write(frames) // if it fails, so does the connection, and the next one begins with it
	}
}

// introducing is what the session sends behind a handshake.
func (s *Session) introducing() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.auth
}

// followCredentials has the reader learn of new ones, though nobody here opens a session: others do elsewhere.
func (c *Client) followCredentials(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, credentialsPause)
		c.introduction()
	}
}
