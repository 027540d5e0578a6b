package leasetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/raftlease/raftlease/lease"
)

var inspectCases = []one{
	{"get returns the live grant", inspector, getLive},
	{"get of a free name is not found", inspector, getFree},
	{"list returns a prefix in byte order", inspector, listPrefix},
	{"list takes the prefix by the byte", inspector, listLiteral},
}

func (e *env) inspector(i int) lease.Inspector { return e.store(i).(lease.Inspector) }

func getLive(e *env) {
	g := e.acquire(e.store(0), e.name("live"), "a", e.long)
	for i := range len(e.stores) + 1 {
		e.isRecord(i, g, g.sent.Add(e.long))
	}
	longer := e.renew(e.store(0), g.Grant, 2*e.long)
	e.isRecord(1, longer, longer.sent.Add(2*e.long))
	e.release(e.store(0), g.Grant)
	next := e.acquire(e.store(0), g.Name, "b", e.long)
	e.isRecord(1, next, next.sent.Add(e.long))
}

// isRecord checks that handle i returns the record of g, promised until a
// moment.
func (e *env) isRecord(i int, g held, until time.Time) {
	e.Helper()
	r, err := e.get(e.inspector(i), g.Name)
	now := time.Now()
	switch {
	case err != nil:
		e.Fatalf("get %q: %v", g.Name, err)
	case r.Name != g.Name || r.Owner != g.Owner || r.Token != g.Token || r.TTL != g.TTL || !r.Held():
		e.Errorf("get %q: %+v, want owner %q, token %d, ttl %v", g.Name, r, g.Owner, g.Token, g.TTL)
	case len(r.Data) != 0 || r.DataToken != 0:
		e.Errorf("get %q: data %q of token %d, want none", g.Name, r.Data, r.DataToken)
	case r.Remaining < 0 || r.Remaining > lease.Longer(g.TTL)+time.Millisecond:
		e.Errorf("get %q: %v remain of ttl %v", g.Name, r.Remaining, g.TTL)
	case r.Remaining != 0 && now.Add(r.Remaining).Before(until): // 0: not known
		e.Errorf("get %q: %v remain, %v less than promised (G3)", g.Name, r.Remaining, until.Sub(now)-r.Remaining)
	}
}

func getFree(e *env) {
	released := e.acquire(e.store(0), e.name("released"), "a", e.long)
	e.release(e.store(0), released.Grant)
	expired := e.acquire(e.store(0), e.name("expired"), "a", e.short)
	e.expire(expired)
	for _, name := range []string{e.name("never held"), released.Name, expired.Name} {
		for i := range e.stores {
			if r, err := e.get(e.inspector(i), name); !errors.Is(err, lease.ErrNotFound) {
				e.Errorf("get %q: %+v, error %v, want lease.ErrNotFound", name, r, err)
			}
		}
	}
}

// list returns the names under a prefix.
func (e *env) list(i lease.Inspector, prefix string) []string {
	e.Helper()
	var names []string
	err := e.call("list", func(ctx context.Context) error {
		records, err := i.List(ctx, prefix)
		names = nil
		for _, r := range records {
			names = append(names, r.Name)
		}
		return err
	})
	if err != nil {
		e.Fatalf("list %q: %v", prefix, err)
	}
	return names
}

// lists waits until handle i lists exactly these names, which may take a moment
// where reads of many are local ones.
func (e *env) lists(i int, prefix string, want []string) {
	e.Helper()
	var got []string
	defer func() {
		if !slices.Equal(got, want) {
			e.Logf("list %q: %q, want %q", prefix, got, want)
		}
	}()
	e.poll("list of prefix "+prefix, func() bool {
		got = e.list(e.inspector(i), prefix)
		return slices.Equal(got, want)
	})
}

func listPrefix(e *env) {
	suffixes := []string{"a", "B", "b", "aa", "a/", "a b", "\u00e9", "e\u0301", "z", "\U0001f512", "\ufffd", "0", "10", "9"}
	var names []string
	for i, s := range suffixes {
		names = append(names, e.acquire(e.store(i), e.name("p"+s), "a", e.long).Name)
	}
	other := e.acquire(e.store(0), e.name("P"), "a", e.long)
	slices.Sort(names)
	for i := range e.stores {
		e.lists(i, e.name("p"), names)
		e.lists(i, e.name("pa"), slices.DeleteFunc(slices.Clone(names), func(s string) bool {
			return !strings.HasPrefix(s, e.name("pa"))
		}))
		e.lists(i, e.name("nothing"), nil)
		e.lists(i, names[0], names[:1]) // a name is a prefix of itself
	}
	every := e.list(e.inspector(0), "")
	if !slices.IsSorted(every) {
		e.Errorf("list of everything is not in byte order")
	}
	for _, name := range append(names, other.Name) {
		if _, found := slices.BinarySearch(every, name); !found {
			e.Errorf("list of everything lacks %q", name)
		}
	}
	g := e.acquire(e.store(0), names[0], "a", e.long)
	e.release(e.store(0), g.Grant)
	e.lists(1, e.name("p"), names[1:])
}

func listLiteral(e *env) {
	for _, s := range []string{"%", "_", "*", "?", "[a]", "\\", "'", "a", "ax", "A"} {
		e.acquire(e.store(0), e.name(s+"1"), "a", e.long)
	}
	for _, s := range []string{"%", "_", "*", "?", "[a]", "\\", "'", "ax", "A"} {
		e.lists(0, e.name(s), []string{e.name(s + "1")})
	}
	e.lists(0, e.name("a"), []string{e.name("a1"), e.name("ax1")})
	e.lists(0, e.name("[a"), []string{e.name("[a]1")})
}
