package raftlease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// electorate is a made-up cluster whose nodes answer a round.
type electorate struct {
	servers  []raft.Server
	promised map[string]uint64              // by id; who is missing does not answer
	answers  map[string]*pb.ConfirmResponse // of those who answer something else
	asked    map[string]int
	mu       sync.Mutex
}

func (e *electorate) confirm(t *testing.T, self string, term uint64) error {
	t.Helper()
	var wg sync.WaitGroup
	defer wg.Wait()
	e.asked = map[string]int{}
	ctx, cancel := context.WithTimeout(context.Background(), confirmLimit)
	defer cancel()
	return quorum{
		self: self, cluster: "x",
		servers:  func() []raft.Server { return e.servers },
		promised: func() uint64 { return e.promised[self] },
		start:    wg.Go,
		ask: func(ctx context.Context, id, _ string, _ uint64) (*pb.ConfirmResponse, error) {
			e.mu.Lock()
			e.asked[id]++
			a, p := e.answers[id], e.promised[id]
			e.mu.Unlock()
			switch {
			case a != nil:
				return a, nil
			case p == 0:
				return nil, errors.New("no answer")
			}
			return &pb.ConfirmResponse{ClusterId: "x", Id: id, Promised: p}, nil
		},
	}.Confirm(ctx, term)
}

// members makes servers, those whose id begins with n without a vote.
func members(ids ...string) []raft.Server {
	var ss []raft.Server
	for _, id := range ids {
		s := raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id + ":1")}
		if id[0] == 'n' {
			s.Suffrage = raft.Nonvoter
		}
		ss = append(ss, s)
	}
	return ss
}

func TestQuorum_Confirm(t *testing.T) {
	const term = 7
	all := func(ids ...string) map[string]uint64 {
		m := map[string]uint64{}
		for _, id := range ids {
			m[id] = term
		}
		return m
	}
	for _, c := range []struct {
		name     string
		self     string
		servers  []raft.Server
		promised map[string]uint64
		answers  map[string]*pb.ConfirmResponse
		ok       bool
	}{
		{name: "alone", self: "a", servers: members("a"), promised: all("a"), ok: true},
		{name: "alone with a later promise of its own", self: "a", servers: members("a"), promised: map[string]uint64{"a": 8}},
		{name: "all of three", self: "a", servers: members("a", "b", "c"), promised: all("a", "b", "c"), ok: true},
		{name: "two of three", self: "a", servers: members("a", "b", "c"), promised: all("a", "c"), ok: true},
		{name: "one of three", self: "a", servers: members("a", "b", "c"), promised: all("a")},
		{name: "two of four", self: "a", servers: members("a", "b", "c", "d"), promised: all("a", "b")},
		{name: "three of five", self: "a", servers: members("a", "b", "c", "d", "e"), promised: all("a", "d", "e"), ok: true},
		{name: "rule 14: those without a vote are not counted", self: "a",
			servers: members("a", "b", "c", "n1", "n2"), promised: all("a", "n1", "n2")},
		{name: "rule 14: nor do they raise what is needed", self: "a",
			servers: members("a", "n1", "n2"), promised: all("a"), ok: true},
		{name: "rule 14: a leader without a vote does not count itself", self: "n1",
			servers: members("a", "b", "n1"), promised: all("a", "n1")},
		{name: "rule 14: a leader that was removed does not count itself", self: "z",
			servers: members("a", "b"), promised: all("a", "z")},
		{name: "a majority promised a later term", self: "a", servers: members("a", "b", "c"),
			promised: map[string]uint64{"a": term, "b": 8, "c": 8}},
		{name: "one promised a later term", self: "a", servers: members("a", "b", "c"),
			promised: map[string]uint64{"a": term, "b": 8, "c": term}, ok: true},
		{name: "an answer of another node does not count", self: "a", servers: members("a", "b", "c"), promised: all("a"),
			answers: map[string]*pb.ConfirmResponse{"b": {ClusterId: "x", Id: "c", Promised: term}}},
		{name: "an answer of another cluster does not count", self: "a", servers: members("a", "b", "c"), promised: all("a"),
			answers: map[string]*pb.ConfirmResponse{"b": {ClusterId: "y", Id: "b", Promised: term}}},
		{name: "nobody is a member", self: "a", servers: nil, promised: all("a")},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &electorate{servers: c.servers, promised: c.promised, answers: c.answers}
				err := e.confirm(t, c.self, term)
				if (err == nil) != c.ok {
					t.Errorf("confirmed: %v (%v), want %v", err == nil, err, c.ok)
				}
				if err != nil && !errors.Is(err, errNoMajority) {
					t.Errorf("error %v, want %v", err, errNoMajority)
				}
				for id := range e.asked {
					if id[0] == 'n' || id == c.self {
						t.Errorf("asked %s", id)
					}
				}
			})
		})
	}
}

func TestQuorum_AsksAgainWhoDidNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &electorate{servers: members("a", "b", "c"), promised: map[string]uint64{"a": 3}}
		go func() {
			time.Sleep(confirmLimit / 2)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.promised["b"] = 3
		}()
		if err := e.confirm(t, "a", 3); err != nil {
			t.Error(err)
		}
	})
}

func TestQuorum_RoundEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		e := &electorate{servers: members("a", "b", "c"), promised: map[string]uint64{"a": 3}}
		if err := e.confirm(t, "a", 3); !errors.Is(err, errNoMajority) {
			t.Errorf("error %v", err)
		}
		if got := time.Since(start); got != confirmLimit {
			t.Errorf("ended after %v, want %v", got, confirmLimit)
		}
		if e.asked["b"] < 2 {
			t.Errorf("asked b %d times", e.asked["b"])
		}
	})
}
