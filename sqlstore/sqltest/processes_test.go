package sqltest

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/sqlstore"
)

// contenderEnv has the job of a process that this test binary started.
const contenderEnv = "RAFTLEASE_TEST_CONTENDER"

var rounds = flag.Int("rounds", 10, "how often the processes of TestStore_FirstAcquiresFromProcesses want a name")

// contender is one process of several that want the same names.
type contender struct {
	Dialect, Driver, DSN, Table string
	ID, Calls                   int
}

// outcome is what the calls of one process for one name came to.
type outcome struct {
	Won    []uint64 // tokens
	Held   []uint64 // the tokens that refusals told
	Errors []string // any other
}

// Case 24, G1: 64 contenders in 8 processes want a new name at once. One wins,
// all others are told its token, and nothing that a repetition cures is seen.
func TestStore_FirstAcquiresFromProcesses(t *testing.T) {
	const processes, calls = 8, 8
	onEach(t, func(t *testing.T, d database) {
		d.store(t)
		var ask []func(name string) outcome
		for i := range processes {
			ask = append(ask, startContender(t, contender{d.dialect.String(), d.driver, d.dsn, d.table, i, calls}))
		}
		var last uint64
		for round := range *rounds {
			name := fmt.Sprint("job ", round)
			outcomes := make([]outcome, processes)
			var all sync.WaitGroup
			for i := range ask {
				all.Go(func() { outcomes[i] = ask[i](name) })
			}
			all.Wait()
			last = oneProcessWon(t, outcomes, processes*calls, last)
		}
	})
}

func oneProcessWon(t testing.TB, outcomes []outcome, calls int, last uint64) uint64 {
	t.Helper()
	var sum outcome
	for _, o := range outcomes {
		sum.Won = append(sum.Won, o.Won...)
		sum.Held = append(sum.Held, o.Held...)
		sum.Errors = append(sum.Errors, o.Errors...)
	}
	for _, e := range sum.Errors {
		t.Error(e)
	}
	if len(sum.Won) != 1 || len(sum.Won)+len(sum.Held)+len(sum.Errors) != calls {
		t.Fatalf("%d of %d calls won and %d were refused, want that one wins (G1)", len(sum.Won), calls, len(sum.Held))
	}
	winner := sum.Won[0]
	for _, token := range sum.Held {
		if token != winner {
			t.Errorf("refused for token %d, want that of the winner, %d", token, winner)
		}
	}
	if winner <= last {
		t.Errorf("token %d after %d (G2)", winner, last)
	}
	return winner
}

// startContender starts a process and returns how to ask it. It ends with the
// test.
func startContender(t testing.TB, c contender) func(name string) outcome {
	t.Helper()
	job, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), contenderEnv+"="+string(job))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // which ends it
		if err := cmd.Wait(); err != nil {
			t.Errorf("contender %d: %v", c.ID, err)
		}
	})
	answers := json.NewDecoder(out)
	return func(name string) (o outcome) {
		if _, err := fmt.Fprintln(in, name); err != nil {
			return outcome{Errors: []string{err.Error()}}
		}
		if err := answers.Decode(&o); err != nil {
			return outcome{Errors: []string{err.Error()}}
		}
		return o
	}
}

// contend is the whole of a process that startContender started: for each name
// that it reads it makes its calls at once and writes the outcome.
func contend(job string) error {
	var c contender
	if err := json.Unmarshal([]byte(job), &c); err != nil {
		return err
	}
	store, closeDB, err := c.open()
	if err != nil {
		return err
	}
	defer closeDB()
	names := bufio.NewScanner(os.Stdin)
	for names.Scan() {
		var mu sync.Mutex
		var o outcome
		var all sync.WaitGroup
		for i := range c.Calls {
			all.Go(func() {
				g, err := store.Acquire(bg, names.Text(), fmt.Sprintf("process %d call %d", c.ID, i), time.Hour)
				mu.Lock()
				defer mu.Unlock()
				var held *lease.HeldError
				switch {
				case err == nil:
					o.Won = append(o.Won, g.Token)
				case errors.As(err, &held):
					o.Held = append(o.Held, held.Token)
				default:
					o.Errors = append(o.Errors, err.Error())
				}
			})
		}
		all.Wait()
		if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
			return err
		}
	}
	return names.Err()
}

// open opens the store of a contender.
func (c contender) open() (*sqlstore.Store, func() error, error) {
	db, err := sqlOpen(c.Driver, c.DSN)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range sqlstore.Dialects() {
		if d.String() == c.Dialect {
			s, err := sqlstore.Config{Table: c.Table}.Open(db, d)
			return s, db.Close, err
		}
	}
	return nil, nil, fmt.Errorf("no dialect %q", c.Dialect)
}
