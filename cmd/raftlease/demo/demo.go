package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// idleTell is how often the ticks are told when nothing else happens.
const idleTell = 5 * time.Second

// Config says how the demo is shown.
type Config struct {
	Once  bool // end after the verdict, instead of ticking until ctx ends
	JSON  bool // JSON lines instead of text
	Color bool // colours, for a terminal
	Out   io.Writer
}

// ErrBroken says that a promise did not hold.
var ErrBroken = errors.New("a promise was broken")

// Run plays the demo. It returns ErrBroken when a promise did not hold, the cause
// of ctx when that ended before the verdict, and nil when ctx ended after it.
func Run(ctx context.Context, cfg Config) (err error) {
	if err := supported(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "raftlease-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	say := &narrator{out: cfg.Out, json: cfg.JSON, color: cfg.Color, start: now()}
	d := newDirector(dir, say)
	defer d.close()
	say.opening(ttl, dir)
	for _, play := range []func(context.Context) error{d.prologue, d.crash, d.freeze, d.isolate} {
		if err := play(ctx); err != nil {
			say.flush()
			return err
		}
	}
	say.verdict(d.ledger.verdict())
	if !cfg.Once {
		if err := d.idle(ctx); err != nil {
			return err
		}
	}
	if lost := broken(d.ledger.verdict()); len(lost) > 0 {
		return fmt.Errorf("%w: %s", ErrBroken, strings.Join(lost, "; "))
	}
	return say.err
}

// idle lets the job tick until ctx ends.
func (d *director) idle(ctx context.Context) error {
	d.say.say("idle", "", 0, "The job goes on until Ctrl-C.")
	for {
		err := d.let(ctx, idleTell)
		d.say.flush()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}
