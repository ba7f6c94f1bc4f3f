package store

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"sync"
)

// ErrRefused is the error of a token that is too small.
var ErrRefused = errors.New("refused: a larger token was here before")

// A Client reads and writes counters. Many goroutines may use it; each call has a connection to itself while it lasts, so
// that one that is held up holds up no other.
type Client struct {
	address string
	number  int

	mu   sync.Mutex
	idle []*connection
}

type connection struct {
	net.Conn
	encoder *json.Encoder
	decoder *json.Decoder
}

// Dial makes a client of the stores at this Unix socket, for the process with this number. The caller must close it.
func Dial(address string, number int) *Client { return &Client{address: address, number: number} }

// Close closes the client's connections. No call may be under way.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range c.idle {
		each.Close()
	}
	c.idle = nil
}

// Read returns a counter's value. ErrRefused.
func (c *Client) Read(store, lock string, token int64) (int64, error) {
	return c.ask(question{Client: c.number, Store: store, Lock: lock, Token: token})
}

// Write sets a counter. With ErrRefused it has not; with any other error it may have.
func (c *Client) Write(store, lock string, token, value int64) error {
	_, err := c.ask(question{Client: c.number, Store: store, Lock: lock, Token: token, Write: true, Value: value})
	return err
}

func (c *Client) ask(q question) (int64, error) {
	conn, err := c.take()
	if err != nil {
		return 0, err
	}
	var a answer
	if err := conn.encoder.Encode(q); err != nil {
		conn.Close()
		return 0, err
	}
	if err := conn.decoder.Decode(&a); err != nil {
		conn.Close()
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, conn)
	if a.Refused {
		return a.Value, ErrRefused
	}
	return a.Value, nil
}

func (c *Client) take() (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := len(c.idle) - 1; last >= 0 {
		conn := c.idle[last]
		c.idle = c.idle[:last]
		return conn, nil
	}
	conn, err := new(net.Dialer).DialContext(context.Background(), "unix", c.address)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, encoder: json.NewEncoder(conn), decoder: json.NewDecoder(conn)}, nil
}
