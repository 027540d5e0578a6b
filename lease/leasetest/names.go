package leasetest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/raftlease/raftlease/lease"
)

var nameCases = []one{
	{"G8 names are compared byte by byte", 0, namesByByte},
	{"G8 owners are compared byte by byte", 0, ownersByByte},
	{"G1 many names are held at once", 0, manyNames},
}

// alike are strings that something in between may take for equal, or for more
// than a string: case folding, Unicode normalisation, collations that skip or
// pad, escapes, wildcards, quoting, prefixes of each other.
func alike() []string {
	return []string{
		"job", "Job", "JOB", "jo", "job1", "job/1", "job/1/", "job\\1", "job 1", "job  1", "job\u00a01", "job-1", "job\u20101", "job\u00ad1",
		"caf\u00e9", "cafe\u0301", "CAF\u00c9", "cafe",
		"stra\u00dfe", "strasse", "STRASSE", "\u0130", "i\u0307", "i", "I", "\u0131",
		"\u212a", "k", "K", "\uff4b", "\u00c5", "\u212b", "A\u030a", "\ufb01", "fi",
		"\u03c3", "\u03c2", "\u03a3", "a\u200bb", "ab", "a\ufeffb", "a\u200db", "\u200d",
		"it's", "its", "it''s", `"quoted"`, "quoted", "'; DROP TABLE leases; --", "a;b", "a--b", "$1", "?", ":1", "@p1", "%", "_", "[a-z]", "%d", "%!s",
		"a+b", "a%20b", "a%2Bb", "a&b", "a=b", "a#b", "..", ".", "/", "//", "\\", "\\0", "\\x00", "null", "NULL", "0", "00", "0.0", "1e3", "true",
		"\U0001f512", "\U0001f512\ufe0f", "\U0001f468\u200d\U0001f469", "\u202eabc", "abc",
		"\u4e2d\u6587", "\U00020000", "\ufffd", "\U0010ffff",
	}
}

// long255 returns s filled up to the longest name.
func long255(s string) string { return s + strings.Repeat("n", lease.MaxNameLen-len(s)) }

func namesByByte(e *env) {
	names := []string{long255(e.name("n")), long255(e.name("N")), long255(e.name("n"))[:lease.MaxNameLen-1]}
	for _, s := range alike() {
		names = append(names, e.name(s))
	}
	grants := make([]held, len(names))
	e.parallel(len(names), func(i int) {
		g, err := e.tryAcquire(e.store(i), names[i], fmt.Sprint("owner ", i), e.long)
		if err != nil {
			e.Errorf("acquire %q: %v", names[i], err)
		}
		grants[i] = g
	})
	if e.Failed() {
		return
	}
	e.parallel(len(names), func(i int) { e.refusedAsync(i, grants[i]) })
	// Releasing every other name frees no other.
	e.parallel(len(names), func(i int) {
		if i%2 == 0 {
			e.release(e.store(i), grants[i].Grant)
		}
	})
	e.parallel(len(names), func(i int) {
		if i%2 == 1 {
			e.refusedAsync(i, grants[i])
		}
	})
}

func ownersByByte(e *env) {
	owners := append(alike(), strings.Repeat("o", lease.MaxNameLen), strings.Repeat("O", lease.MaxNameLen))
	e.parallel(len(owners), func(i int) {
		name := e.name(fmt.Sprint("of ", i))
		g, err := e.tryAcquire(e.store(i), name, owners[i], e.long)
		if err != nil {
			e.Errorf("acquire for %q: %v", owners[i], err)
			return
		}
		other := owners[(i+1)%len(owners)]
		if _, err := e.tryAcquire(e.store(i), name, other, e.long); err == nil {
			e.Errorf("held by %q, granted to %q (G1)", owners[i], other)
		}
		e.notRenewed(e.store(i), lease.Grant{Name: name, Owner: other, Token: g.Token}, &g)
		e.refusedAsync(i, g)
	})
}

func manyNames(e *env) {
	const n = 200
	grants := make([]held, n)
	e.parallel(n, func(i int) {
		g, err := e.tryAcquire(e.store(i), e.name(fmt.Sprint("many ", i)), fmt.Sprint("owner ", i), e.long)
		if err != nil {
			e.Errorf("acquire name %d: %v", i, err)
		}
		grants[i] = g
	})
	if e.Failed() {
		return
	}
	e.parallel(n, func(i int) {
		if _, err := e.tryRenew(e.store(i+1), grants[i].Grant, e.long); err != nil {
			e.Errorf("renew name %d: %v", i, err)
		}
	})
	e.parallel(n, func(i int) { e.refusedAsync(i+1, grants[i]) })
}

// parallel calls f(0) to f(n-1) on goroutines, where f may also call the Fatal
// methods: they end that goroutine alone.
func (e *env) parallel(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

func (e *env) refusedAsync(i int, g held) {
	e.Helper()
	if g.Token != 0 {
		e.refused(e.store(i), g)
	}
}
