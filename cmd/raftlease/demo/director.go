package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/raftlease/raftlease/fence"
	"github.com/raftlease/raftlease/lease"
)

// The piece that is played.
const (
	leaseName = "demo/job"
	ttl       = 3 * time.Second
	tick      = 250 * time.Millisecond
	patience  = 60 * time.Second // for anything that has to happen

	mostRetries = 5 // of starts whose port was free a moment before
)

var nodes = []string{"a", "b", "c"}

// actor is what the director knows of a node.
type actor struct {
	id      string
	process *process // nil while it is dead
	report  report   // the last of its state
	frozen  bool
	retry   bool // its port was taken by somebody else; it is started again
}

// director plays the acts. It is one goroutine: everything that the children say
// goes through take.
type director struct {
	dir     string
	say     *narrator
	network *network
	peers   map[string]string
	actors  map[string]*actor
	reports chan spoken

	processes []*process // all that were ever started
	whose     chan order // for the children that can answer
	gate      *fence.Gate
	ledger    ledger

	jeopardy uint64 // the token whose jeopardy was told
	fault    error  // of a child that nobody disturbed
	retries  int
}

func newDirector(dir string, say *narrator) *director {
	d := &director{
		dir: dir, say: say, peers: map[string]string{}, actors: map[string]*actor{},
		reports: make(chan spoken, outbox), whose: make(chan order, outbox),
		gate: fence.NewGate(fence.NewMemory()), ledger: ledger{ttl: ttl},
	}
	d.network = newNetwork(func(port, peer int) { d.whose <- order{Do: orderWhose, Port: port, Peer: peer} })
	return d
}

// start starts a node on its data directory.
func (d *director) start(id string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := ln.Addr().String()
	ln.Close()
	d.network.leads(id, addr)
	p, err := startProcess(Part{
		ID: id, Dir: filepath.Join(d.dir, id), Listen: addr, Peers: maps.Clone(d.peers),
		Lease: leaseName, TTL: ttl, Tick: tick,
	}, d.reports, d.network.mine)
	if err != nil {
		return err
	}
	d.processes = append(d.processes, p)
	d.actors[id] = &actor{id: id, process: p}
	return nil
}

// until takes what is said until ok, which has to happen in time.
func (d *director) until(ctx context.Context, what string, ok func() bool) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	again := time.NewTicker(look)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case s := <-d.reports:
			d.take(ctx, s)
		case o := <-d.whose:
			d.askAll(o)
		case <-late.C:
			return fmt.Errorf("waited %v and it did not happen: %s", patience, what)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := errors.Join(d.fault, d.say.err); err != nil {
			return err
		}
	}
	return nil
}

// let goes on for a while.
func (d *director) let(ctx context.Context, pass time.Duration) error {
	over := now() + pass
	return d.until(ctx, "time passes", func() bool { return now() >= over })
}

func (d *director) askAll(o order) {
	for _, a := range d.actors {
		if a.process != nil && !a.frozen {
			a.process.order(o)
		}
	}
}

// take takes in what a child said.
func (d *director) take(ctx context.Context, s spoken) {
	a := d.actors[s.by.node]
	if a == nil || a.process != s.by {
		if s.Kind != reportWrite { // what a killed process said before is true nevertheless
			d.note(s)
		}
		return
	}
	switch s.Kind {
	case reportState:
		d.state(a, s.report)
	case reportWrite:
		d.write(ctx, a, s.report)
	case reportExited:
		if a.retry {
			d.fault = d.start(a.id)
			return
		}
		d.fault = fmt.Errorf("node %s exited: %s\n%s", a.id, s.Why, strings.Join(s.by.log.last(), "\n"))
	case reportFailed, reportGarbled:
		if d.retries < mostRetries && strings.Contains(s.Why, syscall.EADDRINUSE.Error()) {
			d.retries++
			a.retry = true
			return
		}
		d.fault = fmt.Errorf("node %s: %s: %s\n%s", a.id, s.Kind, s.Why, strings.Join(s.by.log.last(), "\n"))
	case reportRefused:
		d.say.say("refused", a.id, 0, "an order was not carried out: %s", s.Why)
	default:
		d.note(s)
	}
}

// note takes in what a worker says about its grant.
func (d *director) note(s spoken) {
	switch s.Kind {
	case reportHeld:
		d.ledger.held(s.by.node, s.Token, s.At, s.Until)
		d.say.say("held", s.by.node, s.Token, "is granted the lease")
	case reportRenewed:
		d.ledger.renewed(s.by.node, s.Token, s.Until)
	case reportJeopardy:
		if d.jeopardy != s.Token {
			d.jeopardy = s.Token
			d.say.say("jeopardy", s.by.node, s.Token, "a renewal did not work, %v are left", ms(s.Left))
		}
	case reportEnded:
		d.ledger.ended(s.by.node, s.Token, s.At)
		d.say.say("ended", s.by.node, s.Token, "stops: %s", s.Why)
	}
}

func (d *director) state(a *actor, r report) {
	before := a.report
	a.report = r
	switch {
	case r.State == "leader" && r.Leader == a.id && (before.State != "leader" || before.Leader != a.id):
		d.say.say("state", a.id, 0, "leads, in term %d", r.Term)
	case r.State != "leader" && before.State == "leader":
		d.say.say("state", a.id, 0, "no longer leads")
	}
}

// write is the resource: it compares tokens (G7).
func (d *director) write(ctx context.Context, a *actor, r report) {
	err := d.gate.Check(ctx, leaseName, r.Token)
	good := err == nil
	if !good && !errors.Is(err, lease.ErrLost) {
		d.fault = fmt.Errorf("write to the resource: %w", err)
		return
	}
	d.ledger.writes = append(d.ledger.writes, written{a.id, r.Token, r.At, good, r.Late})
	a.process.order(order{Do: orderAnswer, Seq: r.Seq, Good: good})
	switch {
	case !good:
		d.say.say("refused", a.id, r.Token, "the resource refuses its write: %v", err)
	case r.Late:
		d.say.say("accepted", a.id, r.Token, "the resource accepts its late write")
	default:
		d.say.ticked(a.id, r.Token)
	}
}

// holder is the last tenure, if its holder is known to be at work.
func (d *director) holder() (tenure, bool) {
	t, ok := d.ledger.last()
	if !ok || t.ended != 0 || d.actors[t.node].process == nil {
		return t, false
	}
	for _, w := range d.ledger.writes {
		if w.token == t.token && w.good {
			return t, true
		}
	}
	return t, false
}

// ready reports whether all nodes but these follow one leader among them, which
// it returns.
func (d *director) ready(without ...string) (leader string, ok bool) {
	for _, a := range d.actors {
		if slices.Contains(without, a.id) {
			continue
		}
		if a.process == nil || a.report.Leader == "" || leader != "" && a.report.Leader != leader {
			return "", false
		}
		leader = a.report.Leader
	}
	lead := d.actors[leader]
	return leader, lead != nil && !slices.Contains(without, leader) && lead.report.State == "leader"
}

// close kills all children, which is how they are used to end, and ends the
// links.
func (d *director) close() {
	for _, p := range d.processes {
		p.kill()
	}
	for _, p := range d.processes {
		for gone := false; !gone; {
			select {
			case <-p.gone:
				gone = true
			case <-d.reports:
			case <-d.whose:
			}
		}
		p.wait()
	}
	d.network.close()
}
