package state

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// contentsOf reads t in order and checks its shape.
func contentsOf(t *testing.T, tr *tree) []*Lease {
	t.Helper()
	var all []*Lease
	tr.ascend("", func(l *Lease) bool { all = append(all, l); return true })
	if !slices.IsSortedFunc(all, func(a, b *Lease) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}) {
		t.Fatal("names are not in order, each once")
	}
	if len(all) != tr.n {
		t.Fatalf("got %d leases, counted %d", len(all), tr.n)
	}
	for _, c := range tr.chunks {
		if len(c.leases) == 0 || len(c.leases) > chunkMax {
			t.Fatalf("chunk of %d leases, want 1 to %d", len(c.leases), chunkMax)
		}
		for _, l := range c.leases[len(c.leases):cap(c.leases)] {
			if l != nil {
				t.Fatalf("%q is kept in memory by a chunk that no longer has it", l.Name)
			}
		}
	}
	return all
}

func inOrder(m map[string]*Lease) []*Lease {
	var all []*Lease
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[name])
	}
	return all
}

func TestTree_HoldsWhatAMapHoldsAndViewsStay(t *testing.T) {
	const seed = 3
	d := rand.New(rand.NewPCG(seed, 1))
	var tr tree
	want := map[string]*Lease{}
	type frozen struct {
		view tree
		want []*Lease
	}
	var views []frozen
	for step := range 60_000 {
		name := fmt.Sprintf("%04d", d.IntN(5000))
		// It grows for a while and shrinks for a while, so that chunks split
		// and join.
		if grow := step/10_000%2 == 0; d.IntN(4) == 0 != grow {
			l := &Lease{Name: name}
			tr.set(l)
			want[name] = l
		} else if want[name] != nil {
			tr.remove(name)
			delete(want, name)
		}
		if got := tr.get(name); got != want[name] {
			t.Fatalf("step %d: get %q: got %v, want %v", step, name, got, want[name])
		}
		if d.IntN(500) == 0 {
			views = append(views, frozen{tr.view(), inOrder(want)})
		}
	}
	if !slices.Equal(contentsOf(t, &tr), inOrder(want)) {
		t.Fatal("the tree and the map differ at the end")
	}
	for i := range views {
		if !slices.Equal(contentsOf(t, &views[i].view), views[i].want) {
			t.Fatalf("view %d of %d has changed", i, len(views))
		}
	}
	names := slices.Sorted(maps.Keys(want))
	d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		tr.remove(name)
		if len(tr.chunks) > 2+4*tr.n/chunkMax {
			t.Fatalf("%d chunks for %d leases: small ones do not join", len(tr.chunks), tr.n)
		}
	}
	if len(tr.chunks) != 0 || tr.n != 0 || tr.get("0001") != nil {
		t.Fatalf("emptied: got %d chunks, %d leases", len(tr.chunks), tr.n)
	}
}

// A view is of no use if it costs a copy of everything.
func TestTree_AViewCopiesOnlyWhatIsWritten(t *testing.T) {
	var tr tree
	for i := range 10_000 {
		tr.push(&Lease{Name: fmt.Sprintf("%05d", i)})
	}
	if got := testing.AllocsPerRun(100, func() { tr.view() }); got > 0 {
		t.Errorf("a view allocates %v times", got)
	}
	l := &Lease{Name: "05000"}
	// The list of chunks, one chunk and its list.
	if got := testing.AllocsPerRun(100, func() { tr.view(); tr.set(l) }); got > 3 {
		t.Errorf("the first write after a view allocates %v times", got)
	}
	if got := testing.AllocsPerRun(100, func() { tr.set(l) }); got > 0 {
		t.Errorf("the next write allocates %v times", got)
	}
}

func TestTree_AscendBeginsAnywhere(t *testing.T) {
	var tr tree
	tr.ascend("", func(*Lease) bool { t.Fatal("an empty tree has a lease"); return false })
	for i := range 1000 {
		tr.push(&Lease{Name: fmt.Sprintf("%04d", 2*i)})
	}
	contentsOf(t, &tr)
	for i := range 2000 {
		from, n := fmt.Sprintf("%04d", i), 0
		tr.ascend(from, func(l *Lease) bool {
			if want := fmt.Sprintf("%04d", (i+1)/2*2+2*n); l.Name != want {
				t.Fatalf("from %s: got %s as number %d, want %s", from, l.Name, n, want)
			}
			n++
			return n < 3
		})
		if want := min(3, 1000-(i+1)/2); n != want {
			t.Fatalf("from %s: got %d leases, want %d", from, n, want)
		}
	}
}
