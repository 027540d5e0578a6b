package state

import (
	"slices"
	"strings"
)

// chunkMax is the most leases a chunk has. Half of it is copied on average when
// a chunk is written for the first time after a view was taken.
const chunkMax = 256

// tree holds leases in byte order of their names: a list of short sorted lists.
// A view of it costs nothing; what is written afterwards is copied first, chunk
// by chunk, so that a snapshot of a million leases holds nobody up. Leases in a
// tree are immutable. The zero value is empty. Writing needs the caller's lock,
// a view can be read without one.
type tree struct {
	chunks []*chunk // none is empty
	n      int
	gen    uint64 // chunks of an earlier one are shared with a view
	shared bool   // chunks itself is
}

type chunk struct {
	gen    uint64
	leases []*Lease
}

// view returns the present contents. Neither it nor t is changed by what is
// later written to the other.
func (t *tree) view() tree {
	t.shared = true
	return *t
}

// get returns nil when there is no such lease.
func (t *tree) get(name string) *Lease {
	if len(t.chunks) == 0 {
		return nil
	}
	c := t.chunks[t.find(name)]
	if i, ok := c.find(name); ok {
		return c.leases[i]
	}
	return nil
}

// set puts l in the place of the lease with its name, or adds it.
func (t *tree) set(l *Lease) {
	t.own()
	if len(t.chunks) == 0 {
		t.push(l)
		return
	}
	at := t.find(l.Name)
	c := t.write(at)
	i, ok := c.find(l.Name)
	if ok {
		c.leases[i] = l
		return
	}
	t.n++
	c.leases = slices.Insert(c.leases, i, l)
	if half := len(c.leases) / 2; len(c.leases) > chunkMax {
		t.chunks = slices.Insert(t.chunks, at+1, t.newChunk(c.leases[half:]))
		clear(c.leases[half:])
		c.leases = c.leases[:half]
	}
}

// remove takes out the lease of that name, which is there.
func (t *tree) remove(name string) {
	t.own()
	at := t.find(name)
	c := t.write(at)
	i, _ := c.find(name)
	c.leases = slices.Delete(c.leases, i, i+1)
	t.n--
	// Joining small neighbours keeps the list of chunks short.
	if at > 0 && len(t.chunks[at-1].leases)+len(c.leases) <= chunkMax/2 {
		prev := t.write(at - 1)
		prev.leases = append(prev.leases, c.leases...)
		t.chunks = slices.Delete(t.chunks, at, at+1)
	} else if len(c.leases) == 0 {
		t.chunks = slices.Delete(t.chunks, at, at+1)
	}
}

// push adds l, whose name comes after all others.
func (t *tree) push(l *Lease) {
	t.own()
	last := len(t.chunks) - 1
	if last < 0 || len(t.chunks[last].leases) >= chunkMax*3/4 {
		t.chunks = append(t.chunks, t.newChunk(nil))
		last++
	}
	c := t.write(last)
	c.leases = append(c.leases, l)
	t.n++
}

// ascend calls yield for every lease from the first whose name is not before
// from, until it returns false.
func (t *tree) ascend(from string, yield func(*Lease) bool) {
	if len(t.chunks) == 0 {
		return
	}
	at := t.find(from)
	i, _ := t.chunks[at].find(from)
	for _, c := range t.chunks[at:] {
		for _, l := range c.leases[i:] {
			if !yield(l) {
				return
			}
		}
		i = 0
	}
}

// find returns the chunk in which name is or would be. There has to be one.
func (t *tree) find(name string) int {
	i, ok := slices.BinarySearchFunc(t.chunks, name, func(c *chunk, name string) int {
		return strings.Compare(c.leases[0].Name, name)
	})
	if ok || i == 0 {
		return i
	}
	return i - 1
}

func (c *chunk) find(name string) (int, bool) {
	return slices.BinarySearchFunc(c.leases, name, func(l *Lease, name string) int {
		return strings.Compare(l.Name, name)
	})
}

// own makes the list of chunks t's own.
func (t *tree) own() {
	if t.shared {
		t.chunks = slices.Clone(t.chunks)
		t.gen++
		t.shared = false
	}
}

// write returns a chunk that is t's own.
func (t *tree) write(at int) *chunk {
	c := t.chunks[at]
	if c.gen != t.gen {
		c = t.newChunk(c.leases)
		t.chunks[at] = c
	}
	return c
}

func (t *tree) newChunk(leases []*Lease) *chunk {
	c := &chunk{gen: t.gen, leases: make([]*Lease, 0, chunkMax+1)}
	c.leases = append(c.leases, leases...)
	return c
}
