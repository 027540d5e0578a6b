package leasetest

import (
	"bytes"
	"context"
	"errors"

	"github.com/raftlease/raftlease/lease"
)

const dataRead = dataStore | inspector

var dataCases = []one{
	{"data is read as it was written", dataRead, dataRoundTrip},
	{"G7 a stale token writes nothing", dataRead, staleTokenWritesNothing},
	{"empty data removes the value", dataRead, emptyDataRemoves},
	{"data outlives release and expiry and names its writer", dataRead, dataOutlives},
	{"data belongs to its name alone", dataRead, dataOfOneName},
	{"data is copied in and out", dataRead, dataIsCopied},
}

func (e *env) tryPut(s lease.Store, g lease.Grant, data []byte) error {
	e.Helper()
	return e.call("put "+g.Name, func(ctx context.Context) error { return s.(lease.DataStore).Put(ctx, g, data) })
}

func (e *env) put(s lease.Store, g lease.Grant, data []byte) {
	e.Helper()
	if err := e.tryPut(s, g, data); err != nil {
		e.Fatalf("put %d bytes with token %d: %v", len(data), g.Token, err)
	}
}

// hasData checks the data of a name and the token that wrote it, and returns
// its record.
func (e *env) hasData(s lease.Store, name, data string, token uint64) lease.Record {
	e.Helper()
	r, err := e.get(s.(lease.Inspector), name)
	if err != nil {
		e.Fatalf("get %q: %v", name, err)
	}
	if string(r.Data) != data || r.DataToken != token {
		e.Errorf("%q: data %s of token %d, want %s of %d", name, shown(string(r.Data)), r.DataToken, shown(data), token)
	}
	return r
}

func dataRoundTrip(e *env) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	g := e.acquire(e.store(0), e.name("data"), "a", e.long)
	for i, data := range [][]byte{
		every, []byte("text"), {0}, []byte(" space "), []byte("\r\n"),
		bytes.Repeat(every, lease.MaxDataLen/len(every)), []byte("short again"),
	} {
		for range 2 { // a repetition changes nothing
			e.put(e.store(i), g.Grant, data)
		}
		r := e.hasData(e.store(i+1), g.Name, string(data), g.Token)
		if r.Owner != g.Owner || r.Token != g.Token {
			e.Errorf("after a put: owner %q, token %d, want %q, %d", r.Owner, r.Token, g.Owner, g.Token)
		}
	}
	e.refused(e.store(1), g)
}

func staleTokenWritesNothing(e *env) {
	old := e.shortWithData(e.store(0), e.name("fenced"), "a", "old")
	live := e.takeOver(e.store(1), old, "b", e.long)
	refused := func(g lease.Grant, want string, token uint64) {
		e.Helper()
		e.lost("put", e.tryPut(e.store(0), g, []byte("stale")), g)
		e.hasData(e.store(1), g.Name, want, token)
	}
	refused(old.Grant, "old", old.Token)
	e.put(e.store(1), live.Grant, []byte("new"))
	refused(old.Grant, "new", live.Token)
	refused(lease.Grant{Name: live.Name, Owner: "a", Token: live.Token}, "new", live.Token)
	refused(lease.Grant{Name: live.Name, Owner: "b", Token: live.Token + 1000}, "new", live.Token)
	e.release(e.store(1), live.Grant)
	refused(live.Grant, "new", live.Token)

	never := lease.Grant{Name: e.name("never held"), Owner: "a", Token: 1}
	e.lost("put", e.tryPut(e.store(0), never, []byte("stale")), never)
	if _, err := e.get(e.inspector(1), never.Name); !errors.Is(err, lease.ErrNotFound) {
		e.Errorf("get after a refused put: error %v, want lease.ErrNotFound", err)
	}
}

func emptyDataRemoves(e *env) {
	g := e.acquire(e.store(0), e.name("emptied"), "a", e.long)
	for _, none := range [][]byte{nil, {}} {
		e.put(e.store(0), g.Grant, []byte("some"))
		e.put(e.store(0), g.Grant, none)
		e.hasData(e.store(1), g.Name, "", 0)
	}
	e.release(e.store(0), g.Grant)
	if r, err := e.get(e.inspector(0), g.Name); !errors.Is(err, lease.ErrNotFound) {
		e.Errorf("free and without data: %+v, error %v, want lease.ErrNotFound", r, err)
	}
}

func dataOutlives(e *env) {
	a := e.acquire(e.store(0), e.name("checkpoint"), "a", e.long)
	e.put(e.store(0), a.Grant, []byte("by a"))
	e.release(e.store(0), a.Grant)
	e.isFreeWithData(e.hasData(e.store(1), a.Name, "by a", a.Token))

	b := e.shortWithData(e.store(1), a.Name, "b", "by b")
	e.expire(b)
	e.isFreeWithData(e.hasData(e.store(0), a.Name, "by b", b.Token))
	e.lists(0, a.Name, []string{a.Name})

	c := e.acquire(e.store(0), a.Name, "c", e.long)
	e.larger(c.Grant, b.Grant)
	e.hasData(e.store(1), a.Name, "by b", b.Token)
	e.put(e.store(0), c.Grant, []byte("by c"))
	e.hasData(e.store(1), a.Name, "by c", c.Token)
}

// shortWithData acquires a free name for the short ttl and writes its data
// while the grant lasts.
func (e *env) shortWithData(s lease.Store, name, owner, data string) held {
	e.Helper()
	var g held
	e.inTime("a put in time", func(int) bool {
		g = e.acquire(s, name, owner, e.short)
		err := e.tryPut(s, g.Grant, []byte(data))
		if err != nil {
			e.tooSlow(g, "the put was refused: "+err.Error())
		}
		return err == nil
	})
	return g
}

func (e *env) isFreeWithData(r lease.Record) {
	e.Helper()
	if r.Held() || r.Owner != "" || r.Token != 0 || r.Remaining != 0 {
		e.Errorf("free with data: %+v, want no owner, token and remaining time", r)
	}
}

func dataOfOneName(e *env) {
	a := e.acquire(e.store(0), e.name("one"), "a", e.long)
	b := e.acquire(e.store(0), e.name("One"), "a", e.long)
	e.put(e.store(0), a.Grant, []byte("one"))
	e.hasData(e.store(1), b.Name, "", 0)
	e.put(e.store(0), b.Grant, []byte("another"))
	e.hasData(e.store(1), a.Name, "one", a.Token)
}

func dataIsCopied(e *env) {
	g := e.acquire(e.store(0), e.name("copied"), "a", e.long)
	data := []byte("before")
	e.put(e.store(0), g.Grant, data)
	copy(data, "XXXXXX")
	r := e.hasData(e.store(0), g.Name, "before", g.Token)
	copy(r.Data, "YYYYYY")
	e.hasData(e.store(0), g.Name, "before", g.Token)
}
