//go:build !linux

package journal

import (
	"errors"
	"io/fs"
	"os"
)

var errLinuxOnly = errors.New("leases can be resumed on Linux only")

func bootID() (string, error) { return "", errLinuxOnly }

func lockFile(string) (*os.File, error) { return nil, errLinuxOnly }

func inMemory(string) bool { return false }

const neverWaits = 0

func isOurs(fs.FileInfo) bool { return false }
