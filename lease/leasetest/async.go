package leasetest

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// async is the testing.TB of a case that runs on a goroutine of its own, where
// the Fatal and Skip methods of a *testing.T must not be called.
type async struct {
	testing.TB
	skipped atomic.Bool
}

var _ testing.TB = (*async)(nil)

// FailNow implements testing.TB.
func (a *async) FailNow() {
	a.Fail()
	runtime.Goexit()
}

// Fatal implements testing.TB.
func (a *async) Fatal(args ...any) {
	a.Helper()
	a.Error(args...)
	runtime.Goexit()
}

// Fatalf implements testing.TB.
func (a *async) Fatalf(format string, args ...any) {
	a.Helper()
	a.Errorf(format, args...)
	runtime.Goexit()
}

// SkipNow implements testing.TB.
func (a *async) SkipNow() {
	a.skipped.Store(true)
	runtime.Goexit()
}

// Skip implements testing.TB.
func (a *async) Skip(args ...any) {
	a.Helper()
	a.Log(args...)
	a.SkipNow()
}

// Skipf implements testing.TB.
func (a *async) Skipf(format string, args ...any) {
	a.Helper()
	a.Logf(format, args...)
	a.SkipNow()
}

// Skipped implements testing.TB.
func (a *async) Skipped() bool { return a.skipped.Load() }
