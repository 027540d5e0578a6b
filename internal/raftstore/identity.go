package raftstore

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/hashicorp/raft"
)

const keyIdentity = "raftlease/identity"

// Identity says whose disk this is. It is stored beside the vote, so that a
// lost vote is a lost identity too and is noticed.
type Identity struct {
	Node        string // the node's configured id
	Disk        string // random, made with the directory
	Incarnation uint64 // rises at every start

	// Cluster is set when the disk joins a cluster, before its first vote.
	Cluster string `json:",omitempty"`
	// Founders maps the members that formed the cluster to their disks and
	// Peers to their addresses; empty on a disk that joined later.
	Founders map[string]string `json:",omitempty"`
	Peers    map[string]string `json:",omitempty"`
}

// Session names this run of the node in records: unlike the incarnation alone
// it also differs between a node's former disk and a new one.
func (i Identity) Session() string { return fmt.Sprintf("%d-%.6s", i.Incarnation, i.Disk) }

// clone returns a copy that shares no map.
func (i Identity) clone() Identity {
	i.Founders, i.Peers = maps.Clone(i.Founders), maps.Clone(i.Peers)
	return i
}

func loadIdentity(s raft.StableStore) (Identity, bool, error) {
	var id Identity
	b, err := getOrNil(s, keyIdentity)
	if err != nil || len(b) == 0 {
		return id, false, err
	}
	if err := json.Unmarshal(b, &id); err != nil {
		return id, false, fmt.Errorf("stored identity: %w: the store is damaged", err)
	}
	if id.Node == "" || id.Disk == "" {
		return id, false, fmt.Errorf("stored identity %q names no node or no disk: the store is damaged", b)
	}
	return id, true, nil
}

func storeIdentity(s raft.StableStore, id Identity) error {
	b, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return s.Set([]byte(keyIdentity), b)
}
