package raftlease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/raftlease/raftlease/internal/state"
	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

const (
	membershipTimeout = 5 * time.Second // to get a change into raft's queue
	stuckTransfer     = 3 * time.Second // after which a failed transfer must be over
	// caughtUp is how many entries behind the leader a node may be to become a
	// voter.
	caughtUp = 256
)

// AddMember adds a node without a vote; it asks to become a voter by itself once
// it has caught up. Adding a member again gives it a new address.
func (n *Node) AddMember(ctx context.Context, id, address string) error {
	var f lease.Faults
	checkID(&f, "id", id)
	checkAddress(&f, "address", address, false)
	if err := f.Err(); err != nil {
		return err
	}
	_, err := n.membership(ctx, "add", id, &pb.Operation{Op: &pb.Operation_AddMember{
		AddMember: &pb.AddMemberRequest{Id: id, Address: address}}})
	return err
}

// RemoveMember takes a node out of the cluster, which then stops. Leases that it
// owns run out with their ttl. Removing one that is no member is no error.
func (n *Node) RemoveMember(ctx context.Context, id string) error {
	var f lease.Faults
	checkID(&f, "id", id)
	if err := f.Err(); err != nil {
		return err
	}
	_, err := n.membership(ctx, "remove", id, &pb.Operation{Op: &pb.Operation_RemoveMember{
		RemoveMember: &pb.RemoveMemberRequest{Id: id}}})
	return err
}

// Promote makes a member that has caught up a voter.
func (n *Node) Promote(ctx context.Context, id string) error {
	var f lease.Faults
	checkID(&f, "id", id)
	if err := f.Err(); err != nil {
		return err
	}
	_, err := n.membership(ctx, "promote", id, &pb.Operation{Op: &pb.Operation_Promote{
		Promote: &pb.PromoteRequest{Id: id}}})
	return err
}

// Transfer hands leadership to the voter with this id, or with "" to the one
// that has caught up best, and returns who leads then.
func (n *Node) Transfer(ctx context.Context, to string) (leader string, err error) {
	if to != "" {
		var f lease.Faults
		checkID(&f, "to", to)
		if err := f.Err(); err != nil {
			return "", err
		}
	}
	r, err := n.membership(ctx, "transfer leadership to", to, &pb.Operation{Op: &pb.Operation_Transfer{
		Transfer: &pb.TransferRequest{To: to}}})
	return r.GetTransfer().GetLeaderId(), err
}

func (n *Node) membership(ctx context.Context, verb, id string, op *pb.Operation) (*pb.OperationResult, error) {
	r, _, err := n.do(ctx, op)
	if err != nil {
		return nil, fmt.Errorf("%s member %q: %w", verb, id, err)
	}
	return r, nil
}

func changesMembers(op *pb.Operation) bool {
	switch op.Op.(type) {
	case *pb.Operation_AddMember, *pb.Operation_RemoveMember, *pb.Operation_Promote, *pb.Operation_Transfer:
		return true
	}
	return false
}

// changeMembers carries out op on the leader. A change names the configuration
// that it was decided on, so that of two at once only one takes effect and the
// other is tried again.
func (m *member) changeMembers(ctx context.Context, op *pb.Operation) *pb.OperationResult {
	r := m.raft.Load()
	servers, index := m.servers()
	switch o := op.Op.(type) {
	case *pb.Operation_AddMember:
		id, addr := o.AddMember.Id, o.AddMember.Address
		old, known := m.server(id)
		if known && string(old.Address) == addr {
			return doneResult()
		}
		for _, s := range servers {
			if string(s.Address) == addr && string(s.ID) != id {
				return invalid("address", addr, fmt.Sprintf("an address of its own: member %q has this one", s.ID))
			}
		}
		if known && old.Suffrage == raft.Voter {
			return changed(r.AddVoter(old.ID, raft.ServerAddress(addr), index, membershipTimeout))
		}
		return changed(r.AddNonvoter(raft.ServerID(id), raft.ServerAddress(addr), index, membershipTimeout))
	case *pb.Operation_RemoveMember:
		old, known := m.server(o.RemoveMember.Id)
		if !known {
			return doneResult()
		}
		if old.Suffrage == raft.Voter && voters(servers) == 1 {
			return invalid("id", o.RemoveMember.Id, "not the last voter: close the node instead")
		}
		return changed(r.RemoveServer(old.ID, index, membershipTimeout))
	case *pb.Operation_Promote:
		old, known := m.server(o.Promote.Id)
		switch {
		case !known:
			return invalid("id", o.Promote.Id, "a member: add it first")
		case old.Suffrage == raft.Voter:
			return doneResult()
		}
		if why := m.behind(ctx, old); why != "" {
			return invalid("id", o.Promote.Id, "a member that has caught up: "+why)
		}
		return changed(r.AddVoter(old.ID, old.Address, index, membershipTimeout))
	case *pb.Operation_Transfer:
		return m.transfer(ctx, o.Transfer.To)
	}
	return unknownOutcome()
}

// behind says what keeps s from becoming a voter, "" for nothing.
func (m *member) behind(ctx context.Context, s raft.Server) string {
	ctx, cancel := context.WithTimeout(ctx, confirmLimit)
	defer cancel()
	st, err := m.n.clients.Cluster(string(s.Address)).Status(ctx, &pb.StatusRequest{})
	last := m.raft.Load().CommitIndex()
	switch {
	case err != nil:
		return fmt.Sprintf("it does not answer at %q: %v", s.Address, err)
	case st.Id != string(s.ID) || st.ClusterId != m.cluster:
		return fmt.Sprintf("at %q answers node %q of cluster %q", s.Address, st.Id, st.ClusterId)
	case st.AppliedIndex+caughtUp < last:
		return fmt.Sprintf("it has applied the log up to %d of %d", st.AppliedIndex, last)
	}
	return ""
}

// transfer hands leadership over and waits until the new leader is known here.
func (m *member) transfer(ctx context.Context, to string) *pb.OperationResult {
	r := m.raft.Load()
	var f raft.Future
	switch s, known := m.server(to); {
	case to == m.n.cfg.ID:
		return transferred(to)
	case to == "":
		if servers, _ := m.servers(); voters(servers) < 2 {
			return invalid("to", to, "another voter, and there is none")
		}
		f = r.LeadershipTransfer()
	case !known || s.Suffrage != raft.Voter:
		return invalid("to", to, "the id of a voter")
	default:
		f = r.LeadershipTransferToServer(s.ID, s.Address)
	}
	if err := f.Error(); err != nil {
		m.n.log.Warn("transfer leadership", "to", to, "err", err)
		m.wg.Go(m.probe)
		return notLeader()
	}
	for {
		change := m.change()
		if leader, _ := m.leader(); leader != "" && leader != m.n.cfg.ID {
			return transferred(leader)
		}
		select {
		case <-change:
		case <-ctx.Done():
			return unknownOutcome()
		case <-m.ctx.Done():
			return unknownOutcome()
		}
	}
}

// probe looks whether a transfer that failed has left raft refusing every entry
// for ever (upstream issue 696). Only a restart cures that.
func (m *member) probe() {
	empty := state.EncodeEntry(state.Entry{})
	var err error
	for start := time.Now(); time.Since(start) < stuckTransfer; {
		if err = m.raft.Load().Apply(empty, time.Second).Error(); !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			return
		}
		pause := time.NewTimer(lastPause)
		select {
		case <-pause.C:
		case <-m.ctx.Done():
			pause.Stop()
			return
		}
	}
	m.n.fail(fmt.Errorf("raft has not ended a failed leadership transfer within %v: %w: start this node again", stuckTransfer, err))
}

func voters(servers []raft.Server) int {
	n := 0
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			n++
		}
	}
	return n
}

func doneResult() *pb.OperationResult {
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_DONE}
}

func transferred(leader string) *pb.OperationResult {
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_DONE, Response: &pb.OperationResult_Transfer{
		Transfer: &pb.TransferResponse{LeaderId: leader}}}
}

func invalid(field, value, allowed string) *pb.OperationResult {
	var f lease.Faults
	f.Add(field, value, allowed)
	return &pb.OperationResult{Outcome: pb.Outcome_OUTCOME_DONE, Error: wire.Detail(f.Err())}
}

// changed waits for a change of the configuration. It may be repeated after any
// outcome.
func changed(f raft.IndexFuture) *pb.OperationResult {
	if err := f.Error(); err != nil {
		return unknownOutcome()
	}
	return doneResult()
}
