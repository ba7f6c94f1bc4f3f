package link

import (
	"errors"
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// anyNumber is where a packet filter reads random 32 bits: SKF_AD_OFF + SKF_AD_RANDOM of linux/filter.h, which x/sys does not have.
const anyNumber = 1<<32 - 0x1000 + 56

// lose has a socket lose one of so many packets that arrive at it; 0 none.
func lose(socket syscall.Conn, oneOf uint32) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(descriptor uintptr) {
		if oneOf == 0 {
			failed = unix.SetsockoptInt(int(descriptor), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
			if errors.Is(failed, unix.ENOENT) { // there was none
				failed = nil
			}
			return
		}
		program := losing(oneOf)
		failed = unix.SetsockoptSockFprog(int(descriptor), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
	return errors.Join(err, failed)
}

// losing is a packet filter that lets no byte pass of one of so many packets.
func losing(oneOf uint32) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: anyNumber},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, Jf: 1, K: math.MaxUint32 / oneOf},
		{Code: unix.BPF_RET | unix.BPF_K, K: math.MaxUint32},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}
