package demo

import (
	"context"
	"fmt"
	"time"
)

// breath is how long the job ticks between two events, so that it can be seen.
const breath = 1200 * time.Millisecond

// prologue starts three nodes and waits until one holds the lease.
func (d *director) prologue(ctx context.Context) error {
	for _, id := range nodes {
		addr, err := d.network.link(id)
		if err != nil {
			return err
		}
		d.peers[id] = addr
	}
	for _, id := range nodes {
		if err := d.start(id); err != nil {
			return err
		}
	}
	if err := d.until(ctx, "the three nodes form a cluster", func() bool { _, ok := d.ready(); return ok }); err != nil {
		return err
	}
	return d.until(ctx, "a worker holds the lease", func() bool { _, ok := d.holder(); return ok })
}

// crash: the leader, which holds the lease, is killed.
func (d *director) crash(ctx context.Context) error {
	d.say.heading(1, "The leader, which holds the lease, is killed",
		"kill -9 takes node, leadership and worker at once. Nobody says goodbye.")
	before, err := d.disturb(ctx, true)
	if err != nil {
		return err
	}
	victim := d.actors[before.node]
	victim.process.kill()
	d.say.say("killed", before.node, before.token, "is killed, right after a renewal")
	victim.process = nil
	if err := d.next(ctx, "crash", before); err != nil {
		return err
	}
	after, _ := d.ledger.last()
	d.ledger.known = after.token
	if err := d.start(before.node); err != nil {
		return err
	}
	d.say.say("started", before.node, 0, "is started again, on the data directory that the crash left")
	again := d.actors[before.node]
	if err := d.until(ctx, "the killed node knows again what the others know", func() bool {
		_, ok := d.ready()
		return ok && again.report.NextToken > d.ledger.known
	}); err != nil {
		return err
	}
	d.ledger.restored = again.report.NextToken
	d.say.say("back", before.node, 0, "is back, and knows that token %d is the next", again.report.NextToken)
	return d.let(ctx, breath)
}

// freeze: the process of the holder is stopped for longer than its lease.
func (d *director) freeze(ctx context.Context) error {
	d.say.heading(2, "The holder is frozen for longer than its lease",
		"SIGSTOP, as a debugger, a full memory or a paused machine would. When it wakes up it has noticed nothing.")
	before, err := d.disturb(ctx, false)
	if err != nil {
		return err
	}
	a := d.actors[before.node]
	if err := freeze(a.process.cmd.Process); err != nil {
		return fmt.Errorf("freeze node %s: %w", before.node, err)
	}
	a.frozen = true
	d.say.say("frozen", before.node, before.token, "is frozen, right after a renewal")
	if err := d.next(ctx, "freeze", before); err != nil {
		return err
	}
	if err := d.let(ctx, breath); err != nil {
		return err
	}

	d.say.say("thawed", before.node, before.token, "is thawed, in the middle of its work")
	thawed := now()
	if err := thaw(a.process.cmd.Process); err != nil {
		return fmt.Errorf("thaw node %s: %w", before.node, err)
	}
	a.frozen = false
	if err := d.until(ctx, "the thawed holder stops", func() bool {
		return d.ledger.find(before.node, before.token).ended != 0
	}); err != nil {
		return err
	}
	d.ledger.noticed = d.ledger.find(before.node, before.token).ended - thawed
	d.ledger.thawed = true
	d.say.say("noticed", before.node, before.token, "noticed it %v after it was thawed, by its own clock", ms(d.ledger.noticed))
	a.process.order(order{Do: orderLate, Token: before.token})
	if err := d.until(ctx, "the late write is answered", func() bool { return d.wroteLate(before.token) }); err != nil {
		return err
	}
	if err := d.until(ctx, "the thawed node follows the leader", func() bool { _, ok := d.ready(); return ok }); err != nil {
		return err
	}
	return d.let(ctx, breath)
}

func (d *director) wroteLate(token uint64) bool {
	for _, w := range d.ledger.writes {
		if w.late && w.token == token {
			return true
		}
	}
	return false
}

// isolate: the leader, which holds the lease, is cut off the network.
func (d *director) isolate(ctx context.Context) error {
	d.say.heading(3, "The leader, which holds the lease, is cut off",
		"No byte passes in either direction. It leads, and must not grant itself what it can no longer promise.")
	before, err := d.disturb(ctx, true)
	if err != nil {
		return err
	}
	d.network.set(before.node, true)
	d.say.say("cut", before.node, before.token, "is cut off, right after a renewal")
	if err := d.next(ctx, "cut", before); err != nil {
		return err
	}
	if err := d.until(ctx, "the cut-off holder stops by itself", func() bool {
		return d.ledger.find(before.node, before.token).ended != 0
	}); err != nil {
		return err
	}
	if err := d.let(ctx, breath); err != nil {
		return err
	}
	d.network.set(before.node, false)
	d.say.say("healed", before.node, 0, "is connected again")
	if err := d.until(ctx, "the node that was cut off follows the new leader", func() bool { _, ok := d.ready(); return ok }); err != nil {
		return err
	}
	d.say.say("back", before.node, 0, "follows node %s", d.actors[before.node].report.Leader)
	return d.let(ctx, breath)
}

// disturb prepares an act: it has the holder lead, or not lead, and waits until
// it has just renewed. It returns the tenure as it is then.
func (d *director) disturb(ctx context.Context, leads bool) (tenure, error) {
	var t tenure
	var asked time.Duration
	err := d.until(ctx, "the holder's node has the part that it shall play", func() bool {
		leader, ok := d.ready()
		holder, held := d.holder()
		if !ok || !held {
			return false
		}
		t = holder
		if (leader == holder.node) == leads {
			return true
		}
		if asked == 0 || now()-asked > 2*transferLimit {
			asked = now()
			to := holder.node
			for _, id := range nodes {
				if !leads && id != holder.node {
					to = id
				}
			}
			d.say.say("transfer", leader, 0, "leadership is handed to node %s, which the holder does not notice", to)
			d.actors[leader].process.order(order{Do: orderTransfer, Node: to})
		}
		return false
	})
	if err != nil {
		return t, err
	}
	if err := d.let(ctx, breath); err != nil {
		return t, err
	}
	from := *d.ledger.find(t.node, t.token)
	err = d.until(ctx, "the holder renews its lease", func() bool {
		t = *d.ledger.find(from.node, from.token)
		return t.until > from.until
	})
	return t, err
}

// next waits until somebody else has the lease and works, and notes how long
// that took.
func (d *director) next(ctx context.Context, act string, before tenure) error {
	var after tenure
	err := d.until(ctx, "another worker is granted the lease", func() bool {
		after, _ = d.ledger.last()
		return after.token != before.token
	})
	if err != nil {
		return err
	}
	last := d.ledger.find(before.node, before.token).renewed(ttl)
	took := after.from - last
	d.ledger.takeovers = append(d.ledger.takeovers, takeover{act, before.token, after.token, took})
	d.say.say("takeover", after.node, after.token, "has the lease %v after the last renewal of token %d", ms(took), before.token)
	return d.until(ctx, "the new holder ticks", func() bool { _, ok := d.holder(); return ok })
}
