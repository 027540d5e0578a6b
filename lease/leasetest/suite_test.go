package leasetest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
	"github.com/raftlease/raftlease/memstore"
)

// mutant is a store with one thing broken.
type mutant struct {
	name   string // what it does wrong
	killer string // the case that must say so
	hooks  func(s *memstore.Store) hooks
}

var mutants = slices.Concat(acquireMutants, renewMutants, releaseMutants, contextMutants, invalidMutants, nameMutants,
	waitMutants, readMutants, dataMutants, watchMutants)

// suiteOf tests a store with hooks. Re-opening keeps the store.
func suiteOf(hooksOf func(s *memstore.Store) hooks) Suite {
	return Suite{
		Open: func(t testing.TB) lease.Store {
			s := inMemory(t)
			return &hooked{Store: s, hooks: hooksOf(s)}
		},
		Reopen: func(_ testing.TB, s lease.Store) lease.Store { return s },
		Closes: true,
	}
}

func sound(*memstore.Store) hooks { return hooks{} }

func TestSuite_PassesASoundStore(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			if r := judge(t, suiteOf(sound), c); r.failed || r.skipped {
				t.Errorf("failed %v, skipped %v:\n%s", r.failed, r.skipped, r.said())
			}
		})
	}
}

// A store may be slow, and may have to be asked twice.
func TestSuite_PassesASlowAndUnreliableStore(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			if r := judge(t, suiteOf(unreliable), c); r.failed {
				t.Errorf("skipped %v:\n%s", r.skipped, r.said())
			}
		})
	}
}

func TestSuite_RejectsABrokenStore(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			r := judge(t, suiteOf(m.hooks), caseNamed(t, m.killer))
			if !r.failed {
				t.Fatalf("the case %q passes (skipped: %v):\n%s", m.killer, r.skipped, r.said())
			}
			t.Log(r.said())
		})
	}
}

func TestSuite_RejectsAStoreThatForgets(t *testing.T) {
	for _, name := range []string{"G2 tokens rise across re-opening", "G5 data is kept across re-opening"} {
		suite := suiteOf(sound)
		suite.Reopen = func(t testing.TB, _ lease.Store) lease.Store { return inMemory(t) }
		if r := judge(t, suite, caseNamed(t, name)); !r.failed {
			t.Errorf("the case %q passes with a store that keeps nothing", name)
		}
	}
}

// Every case can fail: otherwise it says nothing.
func TestSuite_EveryCaseRejectsSomeStore(t *testing.T) {
	for _, c := range cases() {
		killed := slices.ContainsFunc(mutants, func(m mutant) bool { return m.killer == c.name })
		if !killed && c.needs&reopen == 0 {
			t.Errorf("no broken store is rejected by the case %q", c.name)
		}
	}
}

func TestSuite_SkipsWhatAStoreIsNot(t *testing.T) {
	// Only the methods of lease.Store.
	suite := Suite{Open: func(t testing.TB) lease.Store { return struct{ lease.Store }{inMemory(t)} }}
	for _, c := range cases() {
		if r := judge(t, suite, c); r.failed || r.skipped != (c.needs != 0) {
			t.Errorf("%q: failed %v, skipped %v, want skipped %v:\n%s", c.name, r.failed, r.skipped, c.needs != 0, r.said())
		}
	}
}

func TestSuite_UsesAllHandles(t *testing.T) {
	// Two stores that know nothing of each other are not two handles of one.
	suite := Suite{
		Open:   func(t testing.TB) lease.Store { return inMemory(t) },
		Others: func(t testing.TB, _ lease.Store) []lease.Store { return []lease.Store{inMemory(t)} },
	}
	for _, name := range []string{
		"G1 a second owner is refused and told who holds the name", "G1 of 64 contenders one wins",
		"a waiter is granted the name when it is released", "data is read as it was written",
	} {
		if r := judge(t, suite, caseNamed(t, name)); !r.failed {
			t.Errorf("the case %q passes", name)
		}
	}
}

const childEnv = "LEASETEST_CHILD"

// TestChild is run by TestRun_FailsTheSubtest in a process of its own.
func TestChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("only for TestRun_FailsTheSubtest")
	}
	Suite{
		MinTTL: 20 * time.Millisecond,
		Open: func(t testing.TB) lease.Store {
			s, err := memstore.Open(memstore.Config{Limits: lease.Limits{MinTTL: 20 * time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return &hooked{Store: s, hooks: grantToAll(s)}
		},
	}.Run(t)
}

func TestRun_FailsTheSubtest(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$/^(G1|G2)_", "-test.v", "-test.timeout=60s")
	child.Env = append(os.Environ(), childEnv+"=1")
	out, err := child.CombinedOutput()
	if err == nil {
		t.Errorf("the process of a broken store ended without an error")
	}
	for _, line := range []string{
		"--- FAIL: TestChild/G1_a_second_owner_is_refused_and_told_who_holds_the_name",
		"--- PASS: TestChild/G1_a_free_name_is_granted",
		"--- SKIP: TestChild/G2_tokens_rise_across_re-opening",
		"Suite.Reopen is nil",
	} {
		if !strings.Contains(string(out), line) {
			t.Errorf("the output lacks %q", line)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

func TestRun_WithoutOpenPanics(t *testing.T) {
	defer func() {
		if s, _ := recover().(string); !strings.Contains(s, "Suite.Run") {
			t.Errorf("recovered %q, want a message that names the method", s)
		}
	}()
	Suite{}.Run(t)
}
