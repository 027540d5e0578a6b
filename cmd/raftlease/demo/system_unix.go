//go:build unix

package demo

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// now is a clock that all processes of this machine share. The times of day may
// jump meanwhile; this one does not.
func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("demo: CLOCK_MONOTONIC: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

// supported is nil where processes can be frozen.
func supported() error { return nil }

func freeze(p *os.Process) error { return p.Signal(unix.SIGSTOP) }

func thaw(p *os.Process) error { return p.Signal(unix.SIGCONT) }

// mostSockets bounds the search for a socket. Descriptors are numbered from the
// lowest that is free.
const mostSockets = 4096

// ownsSocket reports whether this process has a TCP socket between these ports.
func ownsSocket(port, peer int) bool {
	for fd := range mostSockets {
		if local, err := unix.Getsockname(fd); err != nil || portOf(local) != port {
			continue
		}
		if remote, err := unix.Getpeername(fd); err == nil && portOf(remote) == peer {
			return true
		}
	}
	return false
}

func portOf(a unix.Sockaddr) int {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return -1
}
