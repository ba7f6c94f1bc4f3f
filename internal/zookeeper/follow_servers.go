package zookeeper

import (
	"context"
	"errors"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// proofTime is how long a server may take to prove that it belongs to the ensemble.
const proofTime = 3 * time.Second

var errForeign = errors.New("it does not know a session of the ensemble: it belongs to another one")

// followServers keeps the list of servers as the ensemble has it, until ctx ends.
func (c *Client) followServers(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		node, changed, err := c.Watch(ctx, ConfigPath)
		if err == nil {
			err = c.takeServers(node.Data)
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			c.sayUnfollowed(err)
		}
		if err == nil {
			said = ""
			c.proveServers(ctx, changed)
		}
		if changed == nil {
			pause(ctx, c.config.SessionTimeout)
			continue
		}
		select {
		case <-changed.Done():
		case <-c.servers.doubts:
		case <-ctx.Done():
		}
	}
}

// takeServers takes in the ensemble's list of its servers.
func (c *Client) takeServers(list []byte) error {
	config, err := ParseEnsembleConfig(list, c.config.Servers, c.config.TLS != nil)
	c.servers.know(config, err == nil || errors.Is(err, ErrPartServerList))
	if err != nil {
		return err
	}
	if !c.config.Observers { // whose sessions would be proved for too long behind another
		config = config.withoutObservers(c.config.Servers)
	}
	return c.servers.take(config)
}

// sayUnfollowed has the log say why a list of servers changes nothing.
func (c *Client) sayUnfollowed(err error) {
	_, _, generation := c.servers.current()
	say := c.config.Log.Warn
	if generation == 0 && (errors.Is(err, ErrNoServerList) || errors.Is(err, ErrPartServerList)) {
		say = c.config.Log.Info
	}
	say("servers of the ensemble not followed; those known so far are used", zap.String("path", ConfigPath), zap.Error(err))
}

// triesUntold are how often a server may fail to prove itself, as one that is about to start does, before the log says so.
const triesUntold = 3

// proveServers has the servers that are listed prove that they belong to the ensemble. It goes on with those that have not until the list
// changes: a server may be listed before it runs.
func (c *Client) proveServers(ctx context.Context, changed *recipes.Signal) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for tries := 0; ctx.Err() == nil; tries++ {
		for _, address := range c.servers.unproved(tries == 0) {
			err := c.proveServer(ctx, address)
			if errors.Is(err, errForeign) {
				c.servers.disprove(address)
			}
			switch {
			case err == nil:
				c.servers.prove(address)
			case errors.Is(err, errForeign) && tries == 0, tries == triesUntold && ctx.Err() == nil:
				c.config.Log.Warn("server not used", zap.String("server", address), zap.Error(err))
			}
		}
		if len(c.servers.unproved(false)) == 0 {
			return
		}
		timer := time.NewTimer(time.Second<<min(tries, 5) + c.upTo(time.Second))
		select {
		case <-timer.C:
		case <-changed.Done():
			cancel()
		case <-c.servers.doubts:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// proveServer returns no error if the server at address knows a session that has just been opened at the one that the reader is attached
// to. The list alone proves nothing: its addresses may be those of something else where the sidecar runs, and who opens sessions at
// two ensembles has every lock twice.
func (c *Client) proveServer(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	candidate, err := c.connectUntil(ctx, address)
	if err != nil {
		return err
	}
	defer candidate.Close()
	known := c.reader.address()
	member, err := c.connectUntil(ctx, known)
	if err != nil {
		return err
	}
	defer member.Close()
	id, password, err := c.handshake(member, 0, make([]byte, passwordBytes))
	if err != nil || id == 0 {
		return errors.Join(err, errRefused)
	}
	if err := c.authenticateRaw(member, known); err != nil {
		return err
	}
	same, _, err := c.handshake(candidate, id, password)
	switch {
	case err != nil:
		return errors.Join(err, endSession(member))
	case same != id:
		return errors.Join(errForeign, endSession(member))
	}
	if err := c.authenticateRaw(candidate, address); err != nil {
		return err
	}
	return endSession(candidate)
}

// connectUntil opens a connection that is closed when ctx ends, once there is what it takes to authenticate over it.
func (c *Client) connectUntil(ctx context.Context, address string) (net.Conn, error) {
	if c.config.SASL != nil {
		if err := c.prepareSASL(ctx, address); err != nil {
			return nil, err
		}
	}
	conn, err := c.connect(ctx, address)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	return conn, err
}

// authenticateRaw authenticates over a connection behind its handshake.
func (c *Client) authenticateRaw(conn net.Conn, address string) error {
	if c.config.SASL == nil {
		return nil
	}
	return exchangeSASL(conn, conn, c.config.SASL, address)
}

// handshake opens a session, or comes back to one.
func (c *Client) handshake(conn net.Conn, id int64, password []byte) (session int64, its []byte, err error) {
	if _, err := conn.Write(handshakeFrame(id, c.config.SessionTimeout, password)); err != nil {
		return 0, nil, err
	}
	return readGreeting(conn)
}

func endSession(conn net.Conn) error {
	if _, err := conn.Write(closeFrame()); err != nil {
		return err
	}
	return awaitClosed(conn)
}
