package lease

import (
	"sync"
	"time"
)

// HoldEventKind says what happened to the hold of a Job.
type HoldEventKind string

// What happens to a hold, in this order: perhaps waiting, then acquired, then
// renewed and jeopardy as it goes, then lost or not, then released.
const (
	// HoldWaiting: the name was not to be had yet; Err says why. Reported when
	// the kind of reason changes.
	HoldWaiting HoldEventKind = "waiting"
	// HoldAcquired: the job begins.
	HoldAcquired HoldEventKind = "acquired"
	// HoldRenewed: the deadline has moved; Remaining says how far off it is.
	HoldRenewed HoldEventKind = "renewed"
	// HoldJeopardy: a renewal has not worked, and Remaining is the time that is
	// still safe. Reported for each such renewal; HoldRenewed ends it.
	HoldJeopardy HoldEventKind = "jeopardy"
	// HoldLost: the job's context has ended, perhaps before the job returns. Err
	// is a *LostError.
	HoldLost HoldEventKind = "lost"
	// HoldReleased: the job has returned and the name was given back, or Err
	// says why it will stay taken until it expires. Not reported after a loss
	// that leaves nothing to release.
	HoldReleased HoldEventKind = "released"
)

// HoldEvent is one thing that happened to the hold of a Job.
type HoldEvent struct {
	Kind  HoldEventKind
	Grant Grant // as it was then; without a token while waiting

	// Remaining is the time until the job's context ends unless a renewal
	// works, at the moment of the event. After HoldReleased: how long the name
	// stays taken on purpose (Job.AtLeast).
	Remaining time.Duration

	Err error
}

// teller calls a function for each event, in order, in a goroutine that exists
// only while there is something to tell.
type teller struct {
	tell func(HoldEvent)
	work sync.WaitGroup

	mu    sync.Mutex
	queue []HoldEvent
	busy  bool
}

func (t *teller) event(e HoldEvent) {
	if t.tell == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, e)
	if !t.busy {
		t.busy = true
		t.work.Go(t.run)
	}
}

func (t *teller) run() {
	for {
		t.mu.Lock()
		if len(t.queue) == 0 {
			t.busy = false
			t.mu.Unlock()
			return
		}
		e := t.queue[0]
		t.queue = t.queue[1:]
		t.mu.Unlock()
		t.tell(e)
	}
}

// wait returns when all has been told.
func (t *teller) wait() { t.work.Wait() }
