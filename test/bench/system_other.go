//go:build unix && !linux

package main

import (
	"errors"
	"syscall"
	"time"
)

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func processorTime(int) (time.Duration, error) {
	return 0, errors.New("the bench needs Linux")
}

func yieldProcessors(int) error { return errors.New("the bench needs Linux") }
