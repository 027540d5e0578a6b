package raftstore

import (
	"io"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

type noFSM struct{}

func (noFSM) Apply(*raft.Log) any                 { return nil }
func (noFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, raft.ErrNothingNewToSnapshot }
func (noFSM) Restore(r io.ReadCloser) error       { return r.Close() }

// startRaft runs raft over s as node "a" and returns its stop. It never stands
// for election itself.
func startRaft(t testing.TB, s *Store, trans raft.Transport) (stop func()) {
	t.Helper()
	c := raft.DefaultConfig()
	c.LocalID, c.Logger = "a", hclog.NewNullLogger()
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = time.Hour, time.Hour, time.Minute
	r, err := raft.NewRaft(c, noFSM{}, s.Logs, s.Stable, s.Snapshots, trans)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := r.Shutdown().Error(); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
	}
}

// raft itself, restarted over a Store, keeps its vote: it gives it again to the
// same candidate and to no other in that term; and the promise is known before
// anything is asked.
func TestStore_RaftKeepsItsVoteAcrossARestart(t *testing.T) {
	dir := Directory(t.TempDir())
	addr, trans := raft.NewInmemTransport("a")
	other, asking := raft.NewInmemTransport("b")
	asking.Connect(addr, trans)
	trans.Connect(other, asking)
	conf := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: addr}, {ID: "b", Address: other}, {ID: "c", Address: "c"}}}
	ask := func(candidate string, term uint64) bool {
		t.Helper()
		req := &raft.RequestVoteRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(candidate), Addr: []byte(candidate)},
			Term:      term, LastLogIndex: 100, LastLogTerm: term - 1, LeadershipTransfer: true,
		}
		var resp raft.RequestVoteResponse
		if err := asking.RequestVote("a", addr, req, &resp); err != nil {
			t.Fatal(err)
		}
		return resp.Granted
	}

	s := mustOpen(t, dir, "a")
	c := raft.DefaultConfig()
	c.LocalID, c.Logger = "a", hclog.NewNullLogger()
	if err := raft.BootstrapCluster(c, s.Logs, s.Stable, s.Snapshots, trans, conf); err != nil {
		t.Fatal(err)
	}
	stop := startRaft(t, s, trans)
	if !ask("b", 5) || ask("c", 5) {
		t.Error("term 5: want the vote for b and not for c")
	}
	stop()

	s = mustOpen(t, dir, "a")
	if got := s.Stable.Promised(); got != 5 {
		t.Errorf("promised after the restart: got %d, want 5", got)
	}
	if has, err := s.HasState(); !has || err != nil {
		t.Errorf("state after the restart: got %v, %v, want true", has, err)
	}
	stop = startRaft(t, s, trans)
	if ask("c", 5) || !ask("b", 5) {
		t.Error("term 5 after the restart: want the vote for b and not for c")
	}
	if !ask("c", 6) || s.Stable.Promised() != 6 {
		t.Errorf("term 6: want the vote for c and promised 6, got promised %d", s.Stable.Promised())
	}
	stop()
}
