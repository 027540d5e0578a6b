//go:build !unix

package demo

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

var started = time.Now()

func now() time.Duration { return time.Since(started) }

func supported() error {
	return fmt.Errorf("the demo freezes processes with SIGSTOP, which %s does not have: run it on Linux or another Unix", runtime.GOOS)
}

func freeze(*os.Process) error { return errors.ErrUnsupported }

func thaw(*os.Process) error { return errors.ErrUnsupported }

func ownsSocket(int, int) bool { return false }

func childAttributes() *syscall.SysProcAttr { return nil }
