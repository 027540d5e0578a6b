package state_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/raftlease/raftlease/internal/state"
)

// logEntry is one entry of a log that a test makes up.
type logEntry struct {
	Index, Term uint64
	Data        []byte
}

// anyLog returns a log of about n commands that fit one another.
func anyLog(t testing.TB, seed uint64, n int) []logEntry {
	t.Helper()
	t.Logf("seed %d", seed)
	d := rand.New(rand.NewPCG(seed, 1))
	m := state.New("c1")
	var log []logEntry
	e := logEntry{Term: 1}
	for n > 0 {
		e.Index += uint64(1 + d.IntN(2))
		if d.IntN(50) == 0 {
			e.Term++
		}
		var cmds []state.Command
		decided := e.Term
		if d.IntN(50) == 0 {
			decided-- // appended too late
		}
		for range 1 + d.IntN(100) {
			cmds = append(cmds, anyStep(d, m, e.Term))
			// The next command shall fit what this one does.
			m.ApplyEntry(e.Index, e.Term, state.Entry{Term: decided, Commands: cmds[len(cmds)-1:]})
		}
		e.Data = state.EncodeEntry(state.Entry{Term: decided, Commands: cmds})
		log = append(log, e)
		n -= len(cmds)
	}
	return log
}

func replay(t testing.TB, m *state.Machine, log []logEntry) {
	t.Helper()
	for _, e := range log {
		if _, err := m.Apply(e.Index, e.Term, e.Data); err != nil {
			t.Fatalf("entry %d: %v", e.Index, err)
		}
	}
}

// One machine applies the whole log. One is restored from the first one's
// snapshots, the third from its own, both at random points, so that every
// snapshot and the entries behind it have to come to the whole.
func TestMachines_AgreeOver100000Commands(t *testing.T) { // G1, G2, G8
	log := anyLog(t, 20, 100_000)
	d := rand.New(rand.NewPCG(20, 2))
	whole, second, third := state.New("c1"), state.New("c1"), state.New("c1")
	codes := map[state.Code]int{}
	newest, restores := uint64(0), 0
	for _, e := range log {
		want, err := whole.Apply(e.Index, e.Term, e.Data)
		if err != nil {
			t.Fatal(err)
		}
		switch d.IntN(10) {
		case 0: // the second one missed the entry and is sent a snapshot
			second = restored(t, snapshotBytes(t, whole))
			restores++
		default:
			replay(t, second, []logEntry{e})
		}
		got, err := third.Apply(e.Index, e.Term, e.Data)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "results", got, want)
		if d.IntN(10) == 0 {
			third = restored(t, snapshotBytes(t, third))
			restores++
		}
		for _, r := range want {
			codes[r.Code]++
			if r.New {
				if r.Lease.Token <= newest {
					t.Fatalf("entry %d: token %d after %d", e.Index, r.Lease.Token, newest)
				}
				newest = r.Lease.Token
			}
		}
		if d.IntN(10) == 0 {
			all := snapshotBytes(t, whole)
			if !bytes.Equal(snapshotBytes(t, second), all) || !bytes.Equal(snapshotBytes(t, third), all) {
				t.Fatalf("entry %d: the machines differ", e.Index)
			}
		}
	}
	same(t, "second hash", second.Hash(), whole.Hash())
	same(t, "third hash", third.Hash(), whole.Hash())
	for code := state.OK; code <= state.Rejected; code++ {
		if codes[code] < 50 {
			t.Errorf("outcome %d happened %d times: the log proves little", code, codes[code])
		}
	}
	t.Logf("%d entries, %d restores, %d tokens, outcomes %v", len(log), restores, newest, codes)
}

const replayVariable = "RAFTLEASE_STATE_TEST_REPLAY"

// replayInChild applies the log on stdin, and writes a hash of the results and
// the bytes of the state.
func replayInChild(stdin io.Reader, stdout io.Writer) (exit int) {
	var log []logEntry
	if err := gob.NewDecoder(stdin).Decode(&log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	m, sum := state.New("c1"), sha256.New()
	for _, e := range log {
		results, err := m.Apply(e.Index, e.Term, e.Data)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Fprintf(sum, "%+v\n", results)
	}
	fmt.Fprintf(stdout, "%x\n", sum.Sum(nil))
	if _, err := m.Snapshot().WriteTo(stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestReplay_SameBytesInThreeProcesses(t *testing.T) { // case 26
	log := anyLog(t, 26, 10_000)
	var input bytes.Buffer
	if err := gob.NewEncoder(&input).Encode(log); err != nil {
		t.Fatal(err)
	}
	m := state.New("c1")
	replay(t, m, log)
	var first []byte
	for i, env := range []string{"GOMAXPROCS=1", "GOGC=10", "TZ=Asia/Kathmandu"} {
		ctx := t.Context()
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.WaitDelay = time.Minute
		cmd.Env = append(os.Environ(), replayVariable+"=1", env)
		cmd.Stdin = bytes.NewReader(input.Bytes())
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("process %d: %v: %s", i, err, stderr.Bytes())
		}
		if first == nil {
			first = out
		}
		if !bytes.Equal(out, first) {
			t.Fatalf("process %d has other results or another state than process 0", i)
		}
		if !bytes.HasSuffix(out, snapshotBytes(t, m)) {
			t.Fatalf("process %d has another state than this one", i)
		}
	}
}
