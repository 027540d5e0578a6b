package client_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/internal/wire"
	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
	"github.com/raftlease/raftlease/transport/rpc"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
	"github.com/raftlease/raftlease/transport/rpc/raftleasev1/raftleasev1connect"
)

var bg = context.Background()

// generous bounds the wait for what must happen.
const generous = 30 * time.Second

// member serves a store over loopback, as a node of a cluster does.
type member struct {
	raftleasev1connect.UnimplementedClusterServiceHandler
	raftleasev1connect.UnimplementedPeerServiceHandler

	addr  string
	store *memstore.Store
	// intercept, if set, is asked before a call is carried out. What it returns
	// besides nil is the answer.
	intercept func(ctx context.Context, verb string) error
	// answer, if set, may hold an answer back or replace it by an error.
	answer  func(ctx context.Context, verb string) error
	lease   raftleasev1connect.LeaseServiceHandler // defaults to one that serves store
	cluster raftleasev1connect.ClusterServiceHandler
	server  *rpc.Server
	served  chan error
	once    sync.Once
}

// start starts a member of the given store on a port of its own.
func start(t testing.TB, store *memstore.Store, set ...func(*member)) *member {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &member{addr: ln.Addr().String(), store: store, served: make(chan error, 1)}
	m.lease, m.cluster = leases{m}, m
	for _, f := range set {
		f(m)
	}
	m.server = rpc.NewServer(rpc.ServerConfig{Lease: m.lease, Cluster: m.cluster, Peer: m})
	go func() { m.served <- m.server.Serve(ln) }()
	t.Cleanup(func() { m.stop(t) })
	return m
}

// stop cuts everybody off.
func (m *member) stop(t testing.TB) {
	t.Helper()
	m.once.Do(func() {
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if err := m.server.Close(ctx); err != nil {
			t.Errorf("close member: %v", err)
		}
		if err := <-m.served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

func newStore(t testing.TB) *memstore.Store {
	t.Helper()
	s := memstore.New()
	t.Cleanup(func() { s.Close() })
	return s
}

// dial returns a client of these addresses.
func dial(t testing.TB, cfg client.Config, addrs ...string) *client.Client {
	t.Helper()
	cfg.Addrs = addrs
	c, err := client.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// sent is err as a member sends it.
func sent(err error) error { return rpc.Error(wire.Detail(err), err.Error()) }

// leases is the lease service of a member.
type leases struct{ *member }

// serve carries out one call.
func serve[Resp any](ctx context.Context, m *member, verb string, do func() (*Resp, error)) (*Resp, error) {
	if m.intercept != nil {
		if err := m.intercept(ctx, verb); err != nil {
			return nil, err
		}
	}
	resp, err := do()
	if m.answer != nil {
		if err := m.answer(ctx, verb); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, sent(err)
	}
	return resp, nil
}

func (l leases) Acquire(ctx context.Context, req *pb.AcquireRequest) (*pb.AcquireResponse, error) {
	verb := "acquire"
	if req.Wait {
		verb = "wait"
	}
	return serve(ctx, l.member, verb, func() (*pb.AcquireResponse, error) {
		ttl := req.Ttl.AsDuration()
		anchor := lease.NewAnchor()
		acquire := l.store.Acquire
		if req.Wait {
			acquire = l.store.AcquireWait
		}
		g, err := acquire(ctx, req.Name, req.Owner, ttl)
		if err != nil {
			return nil, err
		}
		resp := &pb.AcquireResponse{Token: g.Token, Ttl: durationpb.New(ttl)}
		if req.Wait { // the store keeps to itself how long, but a grant shows it
			resp.Parked = durationpb.New(max(0, g.Remaining()+anchor.Elapsed()-lease.Shorter(ttl)))
		}
		return resp, nil
	})
}

func grantOf(req interface {
	GetName() string
	GetOwner() string
	GetToken() uint64
}) lease.Grant {
	return lease.Grant{Name: req.GetName(), Owner: req.GetOwner(), Token: req.GetToken()}
}

func (l leases) Renew(ctx context.Context, req *pb.RenewRequest) (*pb.RenewResponse, error) {
	return serve(ctx, l.member, "renew", func() (*pb.RenewResponse, error) {
		_, err := l.store.Renew(ctx, grantOf(req), req.Ttl.AsDuration())
		return &pb.RenewResponse{}, err
	})
}

func (l leases) Release(ctx context.Context, req *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	return serve(ctx, l.member, "release", func() (*pb.ReleaseResponse, error) {
		return &pb.ReleaseResponse{}, l.store.Release(ctx, grantOf(req))
	})
}

func (l leases) Put(ctx context.Context, req *pb.PutRequest) (*pb.PutResponse, error) {
	return serve(ctx, l.member, "put", func() (*pb.PutResponse, error) {
		return &pb.PutResponse{}, l.store.Put(ctx, grantOf(req), req.Data)
	})
}

func (l leases) Get(ctx context.Context, req *pb.GetRequest) (*pb.GetResponse, error) {
	verb := "get"
	if req.Stale {
		verb = "get stale"
	}
	return serve(ctx, l.member, verb, func() (*pb.GetResponse, error) {
		r, err := l.store.Get(ctx, req.Name)
		return &pb.GetResponse{Lease: wire.Lease(r), AppliedIndex: 77}, err
	})
}

func (l leases) List(ctx context.Context, req *pb.ListRequest) (*pb.ListResponse, error) {
	verb := "list"
	if req.Stale {
		verb = "list stale"
	}
	return serve(ctx, l.member, verb, func() (*pb.ListResponse, error) {
		rs, err := l.store.List(ctx, req.Prefix)
		resp := &pb.ListResponse{AppliedIndex: 77}
		for _, r := range rs {
			resp.Leases = append(resp.Leases, wire.Lease(r))
		}
		return resp, err
	})
}

func (l leases) Watch(ctx context.Context, req *pb.WatchRequest, stream *connect.ServerStream[pb.WatchResponse]) error {
	_, err := serve(ctx, l.member, "watch", func() (*struct{}, error) {
		return nil, l.store.Watch(ctx, req.Prefix, req.After, func(e lease.Event) error {
			return stream.Send(wire.WatchResponse(e))
		})
	})
	return err
}

func (m *member) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Id: m.addr}, nil
}
