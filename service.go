package raftlease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/transport/rpc"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// callLimit bounds calls that came without a deadline, so that a client that
// forgot one does not keep a call for ever.
const callLimit = 30 * time.Second

// failed turns an error into what a client gets.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return rpc.Error(wire.Detail(err), err.Error())
}

func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, callLimit)
}

// leaseService lets clients use a node as a lease store.
type leaseService struct{ n *Node }

func (s leaseService) Acquire(ctx context.Context, req *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	if !req.Wait {
		var cancel context.CancelFunc
		ctx, cancel = limited(ctx)
		defer cancel()
	}
	_, a, err := s.n.grant(ctx, req)
	return a, failed(err)
}

func (s leaseService) Renew(ctx context.Context, req *pb.RenewRequest) (*pb.RenewResponse, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	g, err := s.n.Renew(ctx, lease.Grant{Name: req.Name, Owner: req.Owner, Token: req.Token}, req.Ttl.AsDuration())
	return &pb.RenewResponse{WantedBy: g.Wanted()}, failed(err)
}

func (s leaseService) Release(ctx context.Context, req *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	err := s.n.Release(ctx, lease.Grant{Name: req.Name, Owner: req.Owner, Token: req.Token})
	return &pb.ReleaseResponse{}, failed(err)
}

func (s leaseService) Put(ctx context.Context, req *pb.PutRequest) (*pb.PutResponse, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	err := s.n.Put(ctx, lease.Grant{Name: req.Name, Owner: req.Owner, Token: req.Token}, req.Data)
	return &pb.PutResponse{}, failed(err)
}

func (s leaseService) Get(ctx context.Context, req *pb.GetRequest) (*pb.GetResponse, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	get := s.n.get
	if req.Stale {
		get = s.n.GetStale
	}
	r, index, err := get(ctx, req.Name)
	if err != nil {
		return nil, failed(err)
	}
	return &pb.GetResponse{Lease: wire.Lease(r), AppliedIndex: index}, nil
}

func (s leaseService) List(ctx context.Context, req *pb.ListRequest) (*pb.ListResponse, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	list := s.n.list
	if req.Stale {
		list = s.n.ListStale
	}
	rs, index, err := list(ctx, req.Prefix)
	if err != nil {
		return nil, failed(err)
	}
	res := &pb.ListResponse{AppliedIndex: index}
	for _, r := range rs {
		res.Leases = append(res.Leases, wire.Lease(r))
	}
	return res, nil
}

func (s leaseService) Watch(ctx context.Context, req *pb.WatchRequest, to *connect.ServerStream[pb.WatchResponse]) error {
	return failed(s.n.Watch(ctx, req.Prefix, req.After, func(e lease.Event) error { return to.Send(wire.WatchResponse(e)) }))
}

// clusterService lets operators look at the cluster and change it.
type clusterService struct{ n *Node }

func (s clusterService) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	st := s.n.Status()
	res := &pb.StatusResponse{
		Id: st.ID, ClusterId: st.Cluster, Address: st.Address, State: st.State, LeaderId: st.Leader,
		LeaderAddress: st.LeaderAddress, Term: st.Term, AppliedIndex: st.AppliedIndex, CommitIndex: st.CommitIndex,
		LastIndex: st.LastIndex, Leases: uint64(st.Leases), NextToken: st.NextToken, Version: Version, Owner: st.Owner,
	}
	if st.HasContact {
		res.LastContact = durationpb.New(st.LastContact)
	}
	for _, m := range st.Members {
		res.Members = append(res.Members, &pb.Member{Id: m.ID, Address: m.Address, Voter: m.Voter, Leader: m.Leader})
	}
	return res, nil
}

func (s clusterService) AddMember(ctx context.Context, req *pb.AddMemberRequest) (*pb.AddMemberResponse, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	return &pb.AddMemberResponse{}, failed(s.n.AddMember(ctx, req.Id, req.Address))
}

func (s clusterService) RemoveMember(ctx context.Context, req *pb.RemoveMemberRequest) (*pb.RemoveMemberResponse, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	return &pb.RemoveMemberResponse{}, failed(s.n.RemoveMember(ctx, req.Id))
}

func (s clusterService) Promote(ctx context.Context, req *pb.PromoteRequest) (*pb.PromoteResponse, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	return &pb.PromoteResponse{}, failed(s.n.Promote(ctx, req.Id))
}

func (s clusterService) Transfer(ctx context.Context, req *pb.TransferRequest) (*pb.TransferResponse, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	leader, err := s.n.Transfer(ctx, req.To)
	return &pb.TransferResponse{LeaderId: leader}, failed(err)
}

func (s clusterService) Break(ctx context.Context, req *pb.BreakRequest) (*pb.BreakResponse, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	r, err := s.n.Break(ctx, req.Name)
	return &pb.BreakResponse{Owner: r.Owner, Token: r.Token}, failed(err)
}

// Handover takes as long as the holder takes to finish: only the client's
// deadline bounds it.
func (s clusterService) Handover(ctx context.Context, req *pb.HandoverRequest) (*pb.HandoverResponse, error) {
	token, err := s.n.Handover(ctx, req.Name, req.To)
	return &pb.HandoverResponse{Token: token}, failed(err)
}

// peerService is what the members of one cluster ask each other.
type peerService struct{ n *Node }

// Hello tells who is here.
func (s peerService) Hello(context.Context, *pb.HelloRequest) (*pb.HelloResponse, error) {
	s.n.mu.Lock()
	id := s.n.identity
	s.n.mu.Unlock()
	res := &pb.HelloResponse{Id: id.Node, Disk: id.Disk, ClusterId: id.Cluster, Peers: id.Peers, Founders: id.Founders}
	if id.Cluster == "" {
		res.Peers = s.n.peers()
	}
	if m, _ := s.n.current(); m != nil {
		res.LeaderId, _ = m.leader()
		res.LeaderAddress, _ = m.address(res.LeaderId)
	}
	return res, nil
}

// addressed returns this node's part in the cluster if the message was meant for
// it: an address may belong to another node or cluster by now.
func (s peerService) addressed(cluster, to string) (*member, error) {
	m, _ := s.n.current()
	switch {
	case m == nil:
		return nil, failed(fmt.Errorf("%w: node %q is in no cluster yet", lease.ErrUnavailable, s.n.cfg.ID))
	case m.cluster != cluster || s.n.cfg.ID != to:
		var f lease.Faults
		f.Add("to", to+" of cluster "+cluster, fmt.Sprintf("%s of cluster %s, which answers here", s.n.cfg.ID, m.cluster))
		return nil, failed(f.Err())
	}
	return m, nil
}

// Confirm tells the highest term that this node ever promised. One process has
// this disk, so nobody else can say it.
func (s peerService) Confirm(_ context.Context, req *pb.ConfirmRequest) (*pb.ConfirmResponse, error) {
	m, err := s.addressed(req.ClusterId, req.To)
	if err != nil {
		return nil, err
	}
	return &pb.ConfirmResponse{ClusterId: m.cluster, Id: s.n.cfg.ID, Promised: s.n.disk.Stable.Promised()}, nil
}

// Submit carries out what another member forwards, if this node leads.
func (s peerService) Submit(ctx context.Context, req *pb.SubmitRequest) (*pb.SubmitResponse, error) {
	m, err := s.addressed(req.ClusterId, req.To)
	if err != nil {
		return nil, err
	}
	res := &pb.SubmitResponse{Results: make([]*pb.OperationResult, len(req.Operations))}
	if len(req.Operations) == 1 {
		res.Results[0] = m.here(ctx, req.Operations[0])
	} else {
		var wg sync.WaitGroup
		for i, op := range req.Operations {
			wg.Go(func() { res.Results[i] = m.here(ctx, op) })
		}
		wg.Wait()
	}
	res.LeaderId, _ = m.leader()
	res.LeaderAddress, _ = m.address(res.LeaderId)
	return res, nil
}
