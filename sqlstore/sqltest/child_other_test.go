//go:build !linux

package sqltest

import "syscall"

// childOf changes nothing: PostgreSQL then refuses to run for root.
func childOf(int, int) *syscall.SysProcAttr { return nil }
