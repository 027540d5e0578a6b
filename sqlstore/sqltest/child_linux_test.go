package sqltest

import "syscall"

// childOf makes a process run as that user, unless it is negative, and end with
// the test binary, also when that is killed.
func childOf(uid, gid int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	if uid >= 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return attr
}
