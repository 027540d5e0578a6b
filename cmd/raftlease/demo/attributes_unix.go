//go:build unix && !linux

package demo

import "syscall"

// childAttributes keeps a terminal's Ctrl-C away from the children, whom the
// demo ends itself.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
