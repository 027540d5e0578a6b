package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// statusLimit is how long one member may take to tell its status.
const statusLimit = 3 * time.Second

func (c *cli) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show what every member of the cluster knows",
		Long: `Asks the members at --addr, and all other members that they name, what they know of
themselves and the cluster. It needs neither a leader nor a majority.

Exit code 69 means that no member answered, or that none knows a leader, so that
nothing can be granted. As JSON it is what the best informed member said, with
each member's own status, or the error, in the list of members.`,
		Example: `  raftlease cluster status --addr 10.0.0.1:7400,10.0.0.2:7400
  raftlease cluster status -o json | jq -r .leaderId`,
		Args: cobra.NoArgs,
		RunE: c.asks(func(ctx context.Context, to *client.Client, _ []string) error {
			s := askAll(ctx, to, c.addrs)
			best, ok := s.best()
			if !ok {
				return s.err(c.addrs)
			}
			if err := c.show(s.view(best), func(w io.Writer) { s.table(w, best) }); err != nil {
				return err
			}
			if best.LeaderID == "" {
				return fmt.Errorf("%w: no member that answered knows a leader", lease.ErrUnavailable)
			}
			return nil
		}),
	}
}

// survey is what the members say, by address.
type survey struct {
	addrs  []string // in the order in which they were found
	status map[string]client.Status
	errs   map[string]error
}

// askAll asks these addresses, and those that the answers name.
func askAll(ctx context.Context, to *client.Client, addrs []string) survey {
	s := survey{status: map[string]client.Status{}, errs: map[string]error{}}
	for next := addrs; len(next) > 0; {
		s.ask(ctx, to, next)
		next = nil
		for _, st := range s.status {
			for _, m := range st.Members {
				if !slices.Contains(s.addrs, m.Address) && !slices.Contains(next, m.Address) {
					next = append(next, m.Address)
				}
			}
		}
		slices.Sort(next)
	}
	return s
}

func (s *survey) ask(ctx context.Context, to *client.Client, addrs []string) {
	ctx, cancel := context.WithTimeoutCause(ctx, statusLimit, fmt.Errorf("no answer within %v", statusLimit))
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, addr := range addrs {
		s.addrs = append(s.addrs, addr)
		wg.Go(func() {
			st, err := to.Status(ctx, addr)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.errs[addr] = err
				return
			}
			s.status[addr] = st
		})
	}
	wg.Wait()
}

// best is the status of the member that leads, or else knows most.
func (s survey) best() (best client.Status, ok bool) {
	rank := func(st client.Status) (int, uint64, uint64) {
		r := 0
		if st.LeaderID != "" {
			r = 1
		}
		if st.LeaderID != "" && st.LeaderID == st.ID {
			r = 2
		}
		return r, st.Term, st.AppliedIndex
	}
	for _, addr := range s.addrs {
		st, answered := s.status[addr]
		if !answered {
			continue
		}
		r, term, index := rank(st)
		br, bterm, bindex := rank(best)
		if !ok || slices.Compare([]uint64{uint64(r), term, index}, []uint64{uint64(br), bterm, bindex}) > 0 {
			best, ok = st, true
		}
	}
	return best, ok
}

// err is the error when nobody answered.
func (s survey) err(addrs []string) error {
	errs := make([]error, 0, len(addrs))
	for _, addr := range addrs {
		errs = append(errs, s.errs[addr])
	}
	return errors.Join(errs...)
}

// seen is a member with its own status.
type seen struct {
	client.Member
	Status *client.Status `json:"status,omitempty"`
	Error  string         `json:"error,omitempty"`
}

// members are those of best, and others that answered.
func (s survey) members(best client.Status) []seen {
	var all []seen
	named := map[string]bool{}
	for _, m := range best.Members {
		named[m.ID] = true
		one := seen{Member: m}
		if st, ok := s.status[m.Address]; ok && st.ID == m.ID {
			one.Status = &st
		} else if ok {
			one.Error = fmt.Sprintf("node %q answers at its address", st.ID)
		} else {
			one.Error = shortError(s.errs[m.Address])
		}
		all = append(all, one)
	}
	for _, addr := range s.addrs {
		if st, ok := s.status[addr]; ok && !named[st.ID] {
			named[st.ID] = true
			all = append(all, seen{Member: client.Member{ID: st.ID, Address: st.Address}, Status: &st})
		}
	}
	return all
}

// shortError is the end of a chain of causes.
func shortError(err error) string {
	text := fmt.Sprint(err)
	if i := strings.LastIndex(text, "dial tcp"); i >= 0 {
		text = strings.TrimRight(text[i:], ")")
	}
	return text
}

// statusView is raftlease.v1.StatusResponse with more about the members.
type statusView struct {
	best    client.Status
	members []seen
}

// MarshalJSON implements json.Marshaler.
func (v statusView) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(v.best)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	fields["members"] = v.members
	return json.Marshal(fields)
}

func (s survey) view(best client.Status) statusView { return statusView{best, s.members(best)} }

func (s survey) table(w io.Writer, best client.Status) {
	leader := best.LeaderID
	if leader == "" {
		leader = "none"
	}
	cluster := best.ClusterID
	if cluster == "" {
		cluster = "not formed"
	}
	fmt.Fprintf(w, "cluster %s, leader %s, term %d, %d leases, next token %d\n\n", cluster, leader, best.Term, best.Leases, best.NextToken)
	row(w, "ID", "ADDRESS", "VOTES", "STATE", "TERM", "APPLIED", "BEHIND", "CONTACT", "VERSION")
	for _, m := range s.members(best) {
		votes := "no"
		if m.Voter {
			votes = "yes"
		}
		if m.Status == nil {
			row(w, m.ID, m.Address, votes, "no answer: "+line(m.Error))
			continue
		}
		st, contact := m.Status, "-"
		if st.HasContact {
			contact = short(st.LastContact)
		}
		behind := max(best.CommitIndex, st.AppliedIndex) - st.AppliedIndex
		row(w, m.ID, m.Address, votes, st.State, st.Term, st.AppliedIndex, behind, contact, st.Version)
	}
}
