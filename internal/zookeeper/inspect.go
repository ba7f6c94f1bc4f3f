package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// An Inspection is what somebody who looks after an ensemble wants to know of a node, beyond what recipes do.
type Inspection struct {
	recipes.Node              // without the data
	Counter      int32        // from which the next sequential child takes its number; it never falls
	Permissions  []Permission // who may do what with the node
}

// A Permission is one entry of a node's access control list.
type Permission struct {
	Scheme, ID string
	May        string // of the letters c, d, r, w and a
}

// Inspect looks at one node. ErrNoNode if it is missing.
func (c *Client) Inspect(ctx context.Context, path string) (Inspection, error) {
	a, cancel := c.asker(ctx)
	defer cancel()
	return ask(c.reader, a, func(v *view) (Inspection, error) {
		return wait(a, newFuture[Inspection]().launch(v.session, func() (Inspection, error) {
			return call(a.ctx, v.session, "getAcl", func(conn *zk.Conn) (Inspection, error) {
				acl, stat, err := conn.GetACL(path)
				if err != nil {
					return Inspection{}, err
				}
				return Inspection{nodeOf(nil, stat), counterIn(stat), permissionsIn(acl)}, nil
			})
		}))
	})
}

// counterIn is how many children were ever made: a server shows twice that less the children there are, in 32 bits.
func counterIn(stat *zk.Stat) int32 {
	return int32(uint32(stat.Cversion+stat.NumChildren) >> 1)
}

func permissionsIn(acl []zk.ACL) []Permission {
	permissions := make([]Permission, 0, len(acl))
	for _, entry := range acl {
		var may strings.Builder
		for _, letter := range []struct {
			bit  int32
			text string
		}{{zk.PermCreate, "c"}, {zk.PermDelete, "d"}, {zk.PermRead, "r"}, {zk.PermWrite, "w"}, {zk.PermAdmin, "a"}} {
			if entry.Perms&letter.bit != 0 {
				may.WriteString(letter.text)
			}
		}
		permissions = append(permissions, Permission{entry.Scheme, entry.ID, may.String()})
	}
	return permissions
}

// ErrSilent means that a server does not answer this four-letter word: its `4lw.commands.whitelist` leaves it out.
var ErrSilent = errors.New("the server does not answer this four-letter word")

// longestAnswer bounds what is read of one.
const longestAnswer = 64 << 20

// Ask sends a four-letter word to a server, over a connection of its own, and returns the answer.
func (c *Client) Ask(ctx context.Context, server, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := c.connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, longestAnswer))
	if err != nil && len(answer) == 0 {
		return "", err
	}
	if len(answer) == 0 || bytes.Contains(answer, []byte("is not executed because it is not in the whitelist")) {
		return "", ErrSilent
	}
	return string(answer), nil
}
