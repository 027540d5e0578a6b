package client

import (
	"encoding/json"
	"strconv"
	"time"

	pb "github.com/raftlease/raftlease/transport/rpc/raftleasev1"
)

// Member is one member of a cluster.
type Member struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Voter   bool   `json:"voter"`
	Leader  bool   `json:"leader"`
}

// Status is what one member knows of itself and its cluster. As JSON it has the
// names of proto/raftlease/v1; all numbers are JSON numbers, durations are such
// as "0.25s".
type Status struct {
	ID            string   `json:"id"`
	ClusterID     string   `json:"clusterId"`
	Address       string   `json:"address"`
	State         string   `json:"state"`         // forming, follower, candidate, leader, stopping
	LeaderID      string   `json:"leaderId"`      // "" when there is none
	LeaderAddress string   `json:"leaderAddress"` // "" when there is none
	Term          uint64   `json:"term"`
	AppliedIndex  uint64   `json:"appliedIndex"`
	CommitIndex   uint64   `json:"commitIndex"`
	LastIndex     uint64   `json:"lastIndex"`
	Members       []Member `json:"members"`
	Leases        uint64   `json:"leases"` // live grants in this member's state
	NextToken     uint64   `json:"nextToken"`

	// LastContact is how long ago the member heard from its leader.
	LastContact time.Duration `json:"-"`
	// HasContact is false when there is no LastContact, as on the leader.
	HasContact bool `json:"-"`

	Version string `json:"version"`
	Owner   string `json:"owner"` // of the leases of the member's own service
}

// MarshalJSON implements json.Marshaler: LastContact becomes "lastContact",
// which is absent without a contact.
func (s Status) MarshalJSON() ([]byte, error) {
	type fields Status
	out := struct {
		fields
		LastContact string `json:"lastContact,omitempty"`
	}{fields: fields(s)}
	if s.HasContact {
		out.LastContact = strconv.FormatFloat(s.LastContact.Seconds(), 'f', -1, 64) + "s"
	}
	return json.Marshal(out)
}

func statusOf(m *pb.StatusResponse) Status {
	s := Status{
		ID: m.GetId(), ClusterID: m.GetClusterId(), Address: m.GetAddress(), State: m.GetState(),
		LeaderID: m.GetLeaderId(), LeaderAddress: m.GetLeaderAddress(), Term: m.GetTerm(),
		AppliedIndex: m.GetAppliedIndex(), CommitIndex: m.GetCommitIndex(), LastIndex: m.GetLastIndex(),
		Members: make([]Member, len(m.GetMembers())), Leases: m.GetLeases(), NextToken: m.GetNextToken(),
		LastContact: m.GetLastContact().AsDuration(), HasContact: m.GetLastContact() != nil,
		Version: m.GetVersion(), Owner: m.GetOwner(),
	}
	for i, member := range m.GetMembers() {
		s.Members[i] = Member{
			ID: member.GetId(), Address: member.GetAddress(), Voter: member.GetVoter(), Leader: member.GetLeader(),
		}
	}
	return s
}
