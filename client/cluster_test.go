package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
	"github.com/raftlease/raftlease/transport/rpc/raftleasev1/raftleasev1connect"
)

// operated is the operators' service of a member. It notes what it was asked
// and answers with the errors that it was given, one after the other, then with
// success.
type operated struct {
	raftleasev1connect.UnimplementedClusterServiceHandler
	status *pb.StatusResponse

	mu      sync.Mutex
	answers []error
	asked   []string
}

func (o *operated) answer(format string, args ...any) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, fmt.Sprintf(format, args...))
	if len(o.answers) == 0 {
		return nil
	}
	err := o.answers[0]
	o.answers = o.answers[1:]
	return err
}

func (o *operated) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return o.status, o.answer("status")
}

func (o *operated) AddMember(_ context.Context, r *pb.AddMemberRequest) (*pb.AddMemberResponse, error) {
	return &pb.AddMemberResponse{}, o.answer("add %s %s", r.Id, r.Address)
}

func (o *operated) RemoveMember(_ context.Context, r *pb.RemoveMemberRequest) (*pb.RemoveMemberResponse, error) {
	return &pb.RemoveMemberResponse{}, o.answer("remove %s", r.Id)
}

func (o *operated) Promote(_ context.Context, r *pb.PromoteRequest) (*pb.PromoteResponse, error) {
	return &pb.PromoteResponse{}, o.answer("promote %s", r.Id)
}

func (o *operated) Transfer(_ context.Context, r *pb.TransferRequest) (*pb.TransferResponse, error) {
	return &pb.TransferResponse{LeaderId: "n2"}, o.answer("transfer to %q", r.To)
}

func (o *operated) Break(_ context.Context, r *pb.BreakRequest) (*pb.BreakResponse, error) {
	return &pb.BreakResponse{Owner: "a", Token: 7}, o.answer("break %s", r.Name)
}

func operate(t *testing.T, answers ...error) (*client.Client, *operated) {
	t.Helper()
	o := &operated{status: &pb.StatusResponse{}, answers: answers}
	m := start(t, newStore(t), func(m *member) { m.cluster = o })
	return dial(t, client.Config{}, m.addr), o
}

var operations = []struct {
	asked string
	once  bool
	call  func(ctx context.Context, c *client.Client) (any, error)
	want  any
}{
	{"add n4 host:7000", false, func(ctx context.Context, c *client.Client) (any, error) {
		return nil, c.AddMember(ctx, "n4", "host:7000")
	}, nil},
	{"remove n4", false, func(ctx context.Context, c *client.Client) (any, error) { return nil, c.RemoveMember(ctx, "n4") }, nil},
	{"promote n4", false, func(ctx context.Context, c *client.Client) (any, error) { return nil, c.Promote(ctx, "n4") }, nil},
	{`transfer to ""`, false, func(ctx context.Context, c *client.Client) (any, error) { return c.Transfer(ctx, "") }, "n2"},
	{`transfer to "n3"`, false, func(ctx context.Context, c *client.Client) (any, error) { return c.Transfer(ctx, "n3") }, "n2"},
	{"break x", true, func(ctx context.Context, c *client.Client) (any, error) {
		owner, token, err := c.Break(ctx, "x")
		return fmt.Sprint(owner, token), err
	}, "a7"},
	{"status", false, func(ctx context.Context, c *client.Client) (any, error) {
		s, err := c.Status(ctx, "")
		return s.ID, err
	}, ""},
}

func TestClient_OperatorsCallsAreRepeatedUntilAnswered(t *testing.T) {
	for _, op := range operations {
		t.Run(op.asked, func(t *testing.T) {
			c, o := operate(t, notDone, stopping)
			got, err := op.call(within(t), c)
			if err != nil || got != op.want {
				t.Errorf("got %v, %v, want %v", got, err, op.want)
			}
			if want := []string{op.asked, op.asked, op.asked}; !reflect.DeepEqual(o.asked, want) {
				t.Errorf("asked %q, want %q", o.asked, want)
			}
		})
	}
}

// A break that may have been carried out would break the next holder's grant.
func TestClient_BreakIsNotRepeatedAfterAnUnknownOutcome(t *testing.T) {
	for _, op := range operations {
		for name, answer := range map[string]error{"unknown": unknown, "no detail": noDetail} {
			t.Run(op.asked+", "+name, func(t *testing.T) {
				c, o := operate(t, notDone, answer)
				_, err := op.call(within(t), c)
				attempts := 3
				if op.once {
					attempts = 2
				}
				if errors.Is(err, lease.ErrUnknownOutcome) != op.once || errors.Is(err, lease.ErrUnavailable) {
					t.Errorf("got %v, want ErrUnknownOutcome: %v", err, op.once)
				}
				if len(o.asked) != attempts {
					t.Errorf("%d attempts, want %d", len(o.asked), attempts)
				}
			})
		}
	}
}

func TestClient_BreakOfAFreeName(t *testing.T) {
	c, _ := operate(t, sent(lease.ErrNotFound))
	if owner, token, err := c.Break(within(t), "x"); !errors.Is(err, lease.ErrNotFound) || owner != "" || token != 0 {
		t.Errorf("got %q, %d, %v, want ErrNotFound alone", owner, token, err)
	}
}

func TestClient_StatusOfOneMember(t *testing.T) {
	a, b := start(t, newStore(t)), start(t, newStore(t))
	c := dial(t, client.Config{}, a.addr)
	for _, m := range []*member{a, b} {
		if s, err := c.Status(within(t), m.addr); err != nil || s.ID != m.addr {
			t.Errorf("status of %q: %q, %v", m.addr, s.ID, err)
		}
	}
	if s, err := c.Status(bg, dead(t)); !errors.Is(err, lease.ErrUnavailable) { // and at once
		t.Errorf("status of a dead member: %+v, %v, want ErrUnavailable", s, err)
	}
	b.stop(t)
	if _, err := c.Get(within(t), "x"); !errors.Is(err, lease.ErrNotFound) {
		t.Errorf("get: %v; a status must not change which member is asked", err)
	}
}

func TestStatus_IsTheMembersWithTheNamesOfTheProto(t *testing.T) {
	c, o := operate(t)
	o.status = &pb.StatusResponse{
		Id: "n1", ClusterId: "c", Address: "h:1", State: "follower", LeaderId: "n2", LeaderAddress: "h:2", Term: 3, AppliedIndex: 4,
		CommitIndex: 5, LastIndex: 6, Members: []*pb.Member{{Id: "n2", Address: "h:2", Voter: true, Leader: true}}, Leases: 7,
		NextToken: 8, LastContact: durationpb.New(250 * time.Millisecond), Version: "v", Owner: "o",
	}
	got, err := c.Status(within(t), "")
	want := client.Status{
		ID: "n1", ClusterID: "c", Address: "h:1", State: "follower", LeaderID: "n2", LeaderAddress: "h:2", Term: 3, AppliedIndex: 4,
		CommitIndex: 5, LastIndex: 6, Members: []client.Member{{ID: "n2", Address: "h:2", Voter: true, Leader: true}}, Leases: 7,
		NextToken: 8, LastContact: 250 * time.Millisecond, HasContact: true, Version: "v", Owner: "o",
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	for _, c := range []struct {
		s    client.Status
		want string
	}{
		{got, `{"id":"n1","clusterId":"c","address":"h:1","state":"follower","leaderId":"n2","leaderAddress":"h:2","term":3,` +
			`"appliedIndex":4,"commitIndex":5,"lastIndex":6,"members":[{"id":"n2","address":"h:2","voter":true,"leader":true}],` +
			`"leases":7,"nextToken":8,"version":"v","owner":"o","lastContact":"0.25s"}`},
		{client.Status{}, `{"id":"","clusterId":"","address":"","state":"","leaderId":"","leaderAddress":"","term":0,` +
			`"appliedIndex":0,"commitIndex":0,"lastIndex":0,"members":null,"leases":0,"nextToken":0,"version":"","owner":""}`},
	} {
		if b, err := json.Marshal(c.s); err != nil || string(b) != c.want {
			t.Errorf("got\n%s, %v, want\n%s", b, err, c.want)
		}
	}
}
