//go:build !linux

package link

import (
	"errors"
	"syscall"
)

// lose cannot lose packets elsewhere than on Linux.
func lose(_ syscall.Conn, oneOf uint32) error {
	if oneOf == 0 {
		return nil
	}
	return errors.New("packets can be lost on Linux only")
}
