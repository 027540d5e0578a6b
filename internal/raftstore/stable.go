package raftstore

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// Keys that hashicorp/raft uses (raft.go), the one that replaces two of them, and
// the one that remembers what they no longer tell.
const (
	keyCurrentTerm  = "CurrentTerm"
	keyLastVoteTerm = "LastVoteTerm"
	keyLastVoteCand = "LastVoteCand"
	keyVote         = "raftlease/vote"
	keyPromised     = "raftlease/promised"
)

// Stable is raft's stable store with two additions on which leases rest.
//
// The vote is one value. raft stores a vote by two writes, its term and its
// candidate; after a crash between them the node could give its vote again
// without looking at the candidate's log (raft persistVote). Stable keeps the
// term in memory until the candidate comes and then writes both under one key.
//
// Promised is the highest term this node ever took part in. It is raised before
// anything is written and loaded at start, so that there is no moment at which
// the node has answered a vote while a confirm round still reads an older
// promise (docs/DESIGN.md, confirm round).
type Stable struct {
	inner    raft.StableStore
	promised atomic.Uint64

	mu       sync.Mutex
	voteTerm uint64 // term of a vote whose candidate has not come yet; 0 for none
}

// NewStable wraps inner and loads the promise from it.
func NewStable(inner raft.StableStore) (*Stable, error) {
	s := &Stable{inner: inner}
	term, err := uint64OrZero(inner, keyCurrentTerm)
	if err != nil {
		return nil, err
	}
	voted, _, err := s.vote()
	if err != nil {
		return nil, err
	}
	kept, err := uint64OrZero(inner, keyPromised)
	if err != nil {
		return nil, err
	}
	s.promised.Store(max(term, voted, kept))
	return s, nil
}

// Promised returns the highest term this node ever adopted or voted in. It
// never falls, also across restarts as far as it was written. Safe for concurrent
// use, never blocks.
func (s *Stable) Promised() uint64 { return s.promised.Load() }

func (s *Stable) raise(term uint64) {
	for {
		old := s.promised.Load()
		if term <= old || s.promised.CompareAndSwap(old, term) {
			return
		}
	}
}

// keep raises the promise to term. When term is below it, which is a fault of
// raft's (upstream issue 695: a term that goes backwards), the promise is stored
// first, because what is about to be overwritten was all that told it.
func (s *Stable) keep(term uint64) error {
	s.raise(term)
	if p := s.promised.Load(); term < p {
		return s.inner.SetUint64([]byte(keyPromised), p)
	}
	return nil
}

// SetUint64 implements raft.StableStore.
func (s *Stable) SetUint64(key []byte, val uint64) error {
	switch string(key) {
	case keyCurrentTerm:
		if err := s.keep(val); err != nil {
			return err
		}
	case keyLastVoteTerm:
		s.raise(val)
		s.mu.Lock()
		s.voteTerm = val
		s.mu.Unlock()
		return nil
	}
	return s.inner.SetUint64(key, val)
}

// Set implements raft.StableStore.
func (s *Stable) Set(key, val []byte) error {
	if string(key) != keyLastVoteCand {
		return s.inner.Set(key, val)
	}
	s.mu.Lock()
	term := s.voteTerm
	s.voteTerm = 0
	s.mu.Unlock()
	if term == 0 {
		return fmt.Errorf("store vote for %q: its term was not stored first", val)
	}
	if err := s.keep(term); err != nil {
		return err
	}
	return s.inner.Set([]byte(keyVote), append(binary.BigEndian.AppendUint64(nil, term), val...))
}

// GetUint64 implements raft.StableStore.
func (s *Stable) GetUint64(key []byte) (uint64, error) {
	if string(key) == keyLastVoteTerm {
		term, _, err := s.vote()
		return term, err
	}
	return s.inner.GetUint64(key)
}

// Get implements raft.StableStore.
func (s *Stable) Get(key []byte) ([]byte, error) {
	if string(key) == keyLastVoteCand {
		_, cand, err := s.vote()
		return cand, err
	}
	return s.inner.Get(key)
}

func (s *Stable) vote() (term uint64, candidate []byte, err error) {
	b, err := getOrNil(s.inner, keyVote)
	switch {
	case err != nil:
		return 0, nil, err
	case len(b) == 0:
		return 0, nil, nil
	case len(b) < 8:
		return 0, nil, fmt.Errorf("stored vote has %d bytes, want at least 8: the store is damaged", len(b))
	}
	return binary.BigEndian.Uint64(b), b[8:], nil
}

// raft's stores say "not found" by that text alone.
const notFound = "not found"

func uint64OrZero(s raft.StableStore, key string) (uint64, error) {
	v, err := s.GetUint64([]byte(key))
	if err != nil && err.Error() == notFound {
		return 0, nil
	}
	return v, err
}

func getOrNil(s raft.StableStore, key string) ([]byte, error) {
	v, err := s.Get([]byte(key))
	if err != nil && err.Error() == notFound {
		return nil, nil
	}
	return v, err
}
