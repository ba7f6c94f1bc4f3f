//go:build !linux

package nemesis

import "errors"

func fillDisk(int) error { return errors.New("only Linux limits what another process writes") }
