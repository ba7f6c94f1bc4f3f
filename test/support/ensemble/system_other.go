//go:build unix && !linux

package ensemble

import "net"

// reserve finds a port that is free now; nothing keeps others from taking it.
func reserve() (port, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return port{}, err
	}
	defer listener.Close()
	return port{number: listener.Addr().(*net.TCPAddr).Port, release: func() {}}, nil
}
