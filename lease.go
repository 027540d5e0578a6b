package raftlease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// A call is repeated after these pauses, or as soon as leader or members change.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// Acquire implements lease.Store. It asks the leader, wherever that is, and
// asks again through elections until ctx ends.
func (n *Node) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	return n.acquire(ctx, name, owner, ttl, false)
}

// AcquireWait implements lease.Waiter. Waiters of one name are served in the
// order in which they came to the present leader; after a change of leader they
// queue again. If ctx ends while the name is being granted, the grant is ended at
// once; where the leader cannot be told, it ends with its ttl.
func (n *Node) AcquireWait(ctx context.Context, name, owner string, ttl time.Duration) (lease.Grant, error) {
	return n.acquire(ctx, name, owner, ttl, true)
}

func (n *Node) acquire(ctx context.Context, name, owner string, ttl time.Duration, wait bool) (lease.Grant, error) {
	g, _, err := n.grant(ctx, &pb.AcquireRequest{Name: name, Owner: owner, Ttl: durationpb.New(ttl), Wait: wait})
	return g, err
}

// grant is acquire with the parked time beside it, which a client needs.
func (n *Node) grant(ctx context.Context, req *pb.AcquireRequest) (lease.Grant, *pb.AcquireResponse, error) {
	err := lease.CheckAcquire(req.Name, req.Owner, req.Ttl.AsDuration(), n.cfg.Limits)
	if err != nil {
		return lease.Grant{}, nil, err
	}
	op := &pb.Operation{Op: &pb.Operation_Acquire{Acquire: req}}
	if n.owns(req.Owner) {
		op.Session = n.session()
	}
	if req.Wait {
		op.WaitId = rand.Uint64()
	}
	r, sent, err := n.do(ctx, op)
	if err != nil {
		return lease.Grant{}, nil, fmt.Errorf("acquire lease %q: %w", req.Name, err)
	}
	a := r.GetAcquire()
	// What was parked was under way: a leader that says more must not make the
	// holder believe for longer (G4).
	parked := min(a.GetParked().AsDuration(), sent.Elapsed())
	return sent.Grant(req.Name, req.Owner, a.GetToken(), a.GetTtl().AsDuration(), parked), a, nil
}

// Renew implements lease.Store. It writes nothing to any disk: the leader moves
// the deadline and a majority confirms that it still leads.
func (n *Node) Renew(ctx context.Context, g lease.Grant, ttl time.Duration) (lease.Grant, error) {
	if err := lease.CheckRenew(g, ttl, n.cfg.Limits); err != nil {
		return lease.Grant{}, err
	}
	r, sent, err := n.do(ctx, &pb.Operation{Op: &pb.Operation_Renew{Renew: &pb.RenewRequest{
		Name: g.Name, Owner: g.Owner, Token: g.Token, Ttl: durationpb.New(ttl)}}})
	if err != nil {
		return lease.Grant{}, fmt.Errorf("renew lease %q: %w", g.Name, err)
	}
	return sent.Grant(g.Name, g.Owner, g.Token, ttl, 0).WithWanted(r.GetRenew().GetWantedBy()), nil
}

// Release implements lease.Store.
func (n *Node) Release(ctx context.Context, g lease.Grant) error {
	if err := lease.CheckGrant(g); err != nil {
		return err
	}
	_, _, err := n.do(ctx, &pb.Operation{Op: &pb.Operation_Release{Release: &pb.ReleaseRequest{
		Name: g.Name, Owner: g.Owner, Token: g.Token}}})
	if err != nil {
		return fmt.Errorf("release lease %q: %w", g.Name, err)
	}
	return nil
}

// Put implements lease.DataStore.
func (n *Node) Put(ctx context.Context, g lease.Grant, data []byte) error {
	if err := lease.CheckPut(g, data); err != nil {
		return err
	}
	_, _, err := n.do(ctx, &pb.Operation{Op: &pb.Operation_Put{Put: &pb.PutRequest{
		Name: g.Name, Owner: g.Owner, Token: g.Token, Data: data}}})
	if err != nil {
		return fmt.Errorf("put data of lease %q: %w", g.Name, err)
	}
	return nil
}

// Guarantee implements lease.Store: it is lease.Exclusive.
func (n *Node) Guarantee() lease.Guarantee { return lease.Exclusive }

// Break ends the grant of name, whoever has it, and returns it as it was. Its
// holder may still be at work. ErrNotFound when nobody has it. Unlike the other
// calls it is not repeated after an unknown outcome, because the name may have a
// new holder by then.
func (n *Node) Break(ctx context.Context, name string) (lease.Record, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Record{}, err
	}
	r, _, err := n.do(ctx, &pb.Operation{Op: &pb.Operation_Break{Break: &pb.BreakRequest{Name: name}}})
	if err != nil {
		return lease.Record{}, fmt.Errorf("break lease %q: %w", name, err)
	}
	return lease.Record{Name: name, Owner: r.GetBreak().GetOwner(), Token: r.GetBreak().GetToken()}, nil
}

// Handover asks the holder of name to finish, and gives the lease to the owner
// to, who has to be waiting for it, in one commit with the release. It returns
// the token of the new grant, and gives up when ctx ends. A holder learns of it
// with its next renewal (lease.Grant.Wanted); nothing is taken from one that does
// not release.
func (n *Node) Handover(ctx context.Context, name, to string) (token uint64, err error) {
	var f lease.Faults
	f.Name(name)
	f.Owner(to)
	if err := f.Err(); err != nil {
		return 0, err
	}
	r, _, err := n.do(ctx, &pb.Operation{Op: &pb.Operation_Handover{Handover: &pb.HandoverRequest{Name: name, To: to}}})
	if err != nil {
		return 0, fmt.Errorf("hand lease %q over to %q: %w", name, to, err)
	}
	return r.GetHandover().GetToken(), nil
}

// owns reports whether owner is this process and no other.
func (n *Node) owns(owner string) bool {
	return owner == n.Owner() || strings.HasPrefix(owner, n.Owner()+"/")
}

// do carries out op and repeats it until there is an answer, ctx ends or the
// node closes. The anchor is that of the attempt that was answered: what comes
// before it is no lease time (rule 6). Refusals are errors of package lease.
func (n *Node) do(ctx context.Context, op *pb.Operation) (*pb.OperationResult, lease.Anchor, error) {
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(n.ctx, func() { cancel(context.Cause(n.ctx)) })()

	unknown := false
	pause := firstPause
	for call.Err() == nil {
		m, change := n.current()
		if m == nil {
			select {
			case <-change: // formed
			case <-call.Done():
			}
			continue
		}
		sent := lease.AnchorOn(n.on.Holder)
		r := m.once(call, op)
		switch r.Outcome {
		case pb.Outcome_OUTCOME_DONE:
			return r, sent, wire.Err(r.Error)
		case pb.Outcome_OUTCOME_NOT_LEADER:
		default:
			unknown = true
		}
		if unknown && op.GetBreak() != nil {
			break
		}
		again := time.NewTimer(time.Duration(float64(pause) * (0.5 + rand.Float64())))
		select {
		case <-change:
		case <-again.C:
			pause = min(2*pause, lastPause)
		case <-call.Done():
		}
		again.Stop()
	}
	return nil, lease.Anchor{}, n.gaveUp(ctx, unknown && changes(op))
}

// changes reports whether op may have an effect.
func changes(op *pb.Operation) bool { return op.GetGet() == nil && op.GetList() == nil }

// current returns the node's part in the cluster, nil before there is one, and a
// channel that is closed when trying again makes sense.
func (n *Node) current() (*member, <-chan struct{}) {
	select {
	case <-n.formed:
		return n.member, n.member.change()
	default:
		return nil, n.formed
	}
}

// gaveUp says why a call has no answer.
func (n *Node) gaveUp(ctx context.Context, unknown bool) error {
	kind := lease.ErrUnavailable
	if unknown {
		kind = lease.ErrUnknownOutcome
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s: %w", kind, n.trouble(), context.Cause(ctx))
	case n.ctx.Err() == nil:
		return kind // a break whose outcome is not known
	case unknown:
		return errors.Join(kind, context.Cause(n.ctx))
	}
	return context.Cause(n.ctx)
}

// trouble says in a few words why calls may go unanswered.
func (n *Node) trouble() string {
	m, _ := n.current()
	if m == nil {
		return n.waiting()
	}
	switch leader, _ := m.leader(); leader {
	case "":
		return "no leader is known"
	case n.cfg.ID:
		return "this node leads and has no confirmed majority, or the call had no time"
	default:
		return fmt.Sprintf("leader %q did not answer in time", leader)
	}
}

var (
	_ lease.Store     = (*Node)(nil)
	_ lease.Waiter    = (*Node)(nil)
	_ lease.Inspector = (*Node)(nil)
	_ lease.DataStore = (*Node)(nil)
	_ lease.Watcher   = (*Node)(nil)
)
