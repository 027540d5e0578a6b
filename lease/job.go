package lease

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"
)

// DefaultTTL is the ttl of a Job that names none.
const DefaultTTL = 15 * time.Second

const (
	defaultReleaseTimeout = 5 * time.Second

	// minJobTTL keeps a third of a ttl longer than timers are late.
	minJobTTL = 10 * time.Millisecond
)

// Job says under which lease a function runs. Only Name is required.
type Job struct {
	// Name of the lease.
	Name string

	// Owner is the identity in the record. Defaults to one that no other call
	// has: host, process and a random part. Whoever sets it has to set another
	// one for every call of Run that may go on at the same time, since a store
	// gives an owner again what it has; within this process Run refuses that.
	Owner string

	// TTL is how long the name stays taken when this process dies. Defaults to
	// DefaultTTL. It is renewed every third of it.
	TTL time.Duration

	// Margin is how much earlier than at the grant's deadline the job's context
	// ends, for a job that needs time to stop. 0 to TTL/2.
	Margin time.Duration

	// NoWait tries once and returns the refusal or the fault, instead of waiting
	// until the name is free.
	NoWait bool

	// MaxWait bounds the waiting, never the job. 0 waits until ctx ends.
	MaxWait time.Duration

	// AtLeast keeps the name taken until this long after it was acquired, also
	// when the function returns earlier: Run returns then. When ctx ends before,
	// the name is left to expire, not before AtLeast has passed. A function that
	// panics is not waited for.
	AtLeast time.Duration

	// Require is the least that the store has to guarantee: Exclusive refuses
	// an Eventual store. The zero value takes any.
	Require Guarantee

	// Disabled runs the function without a lease and calls no store, for a
	// service with a single instance. Its grant has token 0 and is never lost.
	Disabled bool

	// ReleaseTimeout bounds the release after the function has returned; the
	// end of the caller's ctx does not shorten it. Defaults to 5 s.
	ReleaseTimeout time.Duration

	// Pause is RunLoop's least time between the end of a tenure and the next
	// acquire, so that others get a turn. Defaults to TTL/10.
	Pause time.Duration

	// Events is called for everything that happens to the hold, in order, one
	// call at a time. No event is dropped. It runs beside the hold: one that
	// blocks delays no renewal, no deadline and no release, only the return of
	// Run.
	Events func(HoldEvent)
}

// Validate reports everything that is wrong with j at once, as an
// *InvalidError. The store checks TTL against its own limits besides.
func (j Job) Validate() error {
	j = j.withDefaults()
	var f Faults
	f.Name(j.Name)
	f.Owner(j.Owner)
	switch {
	case j.TTL < minJobTTL:
		f.Add("TTL", j.TTL, fmt.Sprintf("at least %v", minJobTTL))
	case j.TTL%ttlUnit != 0:
		f.Add("TTL", j.TTL, "whole milliseconds")
	case j.Margin < 0 || j.Margin > j.TTL/2:
		f.Add("Margin", j.Margin, fmt.Sprintf("0 to %v, half of TTL", j.TTL/2))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"MaxWait", j.MaxWait}, {"AtLeast", j.AtLeast}, {"ReleaseTimeout", j.ReleaseTimeout}, {"Pause", j.Pause},
	} {
		if d.value < 0 {
			f.Add(d.field, d.value, "0 or more")
		}
	}
	if j.NoWait && j.MaxWait > 0 {
		f.Add("MaxWait", j.MaxWait, "0 together with NoWait")
	}
	if j.Require < 0 || j.Require > Exclusive {
		f.Add("Require", int(j.Require), "none, Eventual or Exclusive")
	}
	return f.Err()
}

func (j Job) withDefaults() Job {
	if j.Owner == "" {
		j.Owner = uniqueOwner()
	}
	if j.TTL == 0 {
		j.TTL = DefaultTTL
	}
	if j.ReleaseTimeout == 0 {
		j.ReleaseTimeout = defaultReleaseTimeout
	}
	if j.Pause == 0 {
		j.Pause = j.TTL / 10
	}
	return j
}

// enough checks what the store guarantees against what j requires.
func (j Job) enough(s Store) error {
	has := s.Guarantee()
	if has >= j.Require {
		return nil
	}
	var f Faults
	f.Add("Require", j.Require, fmt.Sprintf("at most what the store guarantees, which is %v; use a store that is %v", has, j.Require))
	return f.Err()
}

// usable is how much of a ttl the job gets.
func (j Job) usable() time.Duration { return Shorter(j.TTL) - j.Margin }

// tryTimeout bounds one call of the store.
func (j Job) tryTimeout() time.Duration { return max(j.TTL/5, 100*time.Millisecond) }

// uniqueOwner is an owner that no other call has.
func uniqueOwner() string {
	host, _ := os.Hostname()
	var f Faults
	if f.Owner(host); f.Err() != nil || len(host) > 128 {
		host = "host"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:8])
}
