package demo

import (
	"fmt"
	"strings"
	"time"
)

const (
	slack       = 3 * time.Second // a take-over comes at the latest this long after the ttl
	noticeLimit = time.Second     // for a holder that was thawed
)

// check is one promise with what was seen of it.
type check struct {
	Promise  string `json:"promise"`
	What     string `json:"what"`
	Held     bool   `json:"held"`
	Evidence string `json:"evidence"`
}

// verdict checks the promises.
func (l *ledger) verdict() []check {
	return []check{l.exclusive(), l.rising(), l.lasting(), l.knowing(), l.durable(), l.fenced()}
}

// broken returns the checks that did not hold.
func broken(checks []check) []string {
	var names []string
	for _, c := range checks {
		if !c.Held {
			names = append(names, c.Promise+" "+c.What+" ("+c.Evidence+")")
		}
	}
	return names
}

// exclusive: by their own accounts no two holders overlap, and every write was
// made within the belief of its writer.
func (l *ledger) exclusive() check {
	c := check{Promise: "G1", What: "one holder at a time"}
	ts := l.inOrder()
	for i, t := range ts {
		for _, earlier := range ts[:i] {
			if earlier.end() > t.from {
				c.Evidence = fmt.Sprintf("%s believed in token %d for another %v when %s began with token %d",
					earlier.node, earlier.token, ms(earlier.end()-t.from), t.node, t.token)
				return c
			}
		}
	}
	ticks := 0
	for _, w := range l.writes {
		if w.late || !w.good {
			continue
		}
		ticks++
		if t := l.find(w.node, w.token); t == nil || w.at < t.from || w.at > t.end()+blur {
			c.Evidence = fmt.Sprintf("%s wrote with token %d outside its grant", w.node, w.token)
			return c
		}
	}
	c.Held = len(ts) > 0 && ticks > 0
	c.Evidence = fmt.Sprintf("%d holders in turn, %d ticks, no overlap", len(ts), ticks)
	return c
}

// rising: every grant has a larger token than all before, and the resource
// accepted none that went back.
func (l *ledger) rising() check {
	c := check{Promise: "G2", What: "every grant has a larger token"}
	var highest uint64
	var seen []string
	for _, t := range l.inOrder() {
		if t.token <= highest {
			c.Evidence = fmt.Sprintf("%s was granted token %d after token %d", t.node, t.token, highest)
			return c
		}
		highest = t.token
		seen = append(seen, fmt.Sprint(t.token))
	}
	highest = 0
	for _, w := range l.writes {
		if w.good && w.token < highest {
			c.Evidence = fmt.Sprintf("token %d was accepted after token %d", w.token, highest)
			return c
		}
		if w.good {
			highest = w.token
		}
	}
	c.Held = len(seen) > 0
	c.Evidence = strings.Join(seen, " < ")
	return c
}

// lasting: a grant lasts its ttl, and not much longer.
func (l *ledger) lasting() check {
	c := check{Promise: "G3", What: fmt.Sprintf("taken over %v to %v after the last renewal", l.ttl, l.ttl+slack)}
	c.Held = len(l.takeovers) > 0
	var seen []string
	for _, t := range l.takeovers {
		c.Held = c.Held && t.took >= l.ttl && t.took <= l.ttl+slack
		seen = append(seen, fmt.Sprintf("%s %v", t.act, ms(t.took)))
	}
	c.Evidence = strings.Join(seen, ", ")
	return c
}

// knowing: a holder that was frozen notices by itself that its grant is over.
func (l *ledger) knowing() check {
	c := check{Promise: "G4", What: "the holder knows by its own clock", Evidence: "no holder was thawed"}
	if l.thawed {
		c.Held = l.noticed <= noticeLimit
		c.Evidence = fmt.Sprintf("%v after it was thawed", ms(l.noticed))
	}
	return c
}

// durable: a node that was killed comes back with what was acknowledged.
func (l *ledger) durable() check {
	return check{
		Promise: "G5", What: "a killed node comes back with all it knew", Held: l.known > 0 && l.restored > l.known,
		Evidence: fmt.Sprintf("token %d is known, %d is next", l.known, l.restored),
	}
}

// fenced: what was written under an old token was refused, and nothing else.
func (l *ledger) fenced() check {
	c := check{Promise: "G7", What: "the resource refuses an old token"}
	late, refused := 0, 0
	for _, w := range l.writes {
		switch {
		case w.late && !w.good:
			late++
		case w.late:
			c.Evidence = fmt.Sprintf("a late write with token %d was accepted", w.token)
			return c
		case !w.good:
			refused++
		}
	}
	c.Held = late > 0
	c.Evidence = fmt.Sprintf("%d late write refused", late)
	if refused > 0 {
		c.Evidence += fmt.Sprintf(", and %d of writers that were late by accident", refused)
	}
	return c
}

// ms rounds to what is worth reading.
func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
