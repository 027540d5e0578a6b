package demo

import "syscall"

// childAttributes keeps a terminal's Ctrl-C away from the children, whom the
// demo ends itself. They die with the demo, however that ends, also while frozen.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
