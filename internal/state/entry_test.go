package state_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/raftlease/raftlease/internal/state"
)

// goldenCommands has every kind, with and without what may be missing.
func goldenCommands() []state.Command {
	s := state.Session{Node: "node-1", Disk: "8c6f", Incarnation: 300}
	report := state.Lease{Name: "report", Owner: "node-1/300", Token: 1, Revision: 3}
	queue := state.Lease{Name: "queue/ä", Owner: "b", Token: 2}
	return []state.Command{
		{Kind: state.KindEpoch},
		acquireIn(report.Name, report.Owner, s),
		acquire(queue.Name, queue.Owner, 15*time.Second),
		acquire("data only", "b", 24*time.Hour),
		acquire(queue.Name, "c", time.Millisecond),
		renew(queue, time.Minute),
		shorten(queue, 1500*time.Millisecond),
		put(state.Lease{Name: "data only", Token: 3}, "\x00kept\xff"),
		put(report, strings.Repeat("x", 200)),
		put(queue, ""),
		release(state.Lease{Name: "data only", Owner: "b", Token: 3}),
		acquire("broken", "b", time.Second),
		breakLease("broken"),
		expire(state.Lease{Name: "nobody", Token: 1 << 40, Revision: 1 << 50}, report),
		{Kind: state.KindExpire},
		reclaim(state.Session{Node: "node-2", Disk: "11aa", Incarnation: 1}),
		acquire("", "b", -1), // Rejected, but it has to travel
	}
}

func TestEntry_GoldenBytes(t *testing.T) {
	e := state.Entry{Term: 300, Commands: goldenCommands()}
	got := state.EncodeEntry(e)
	want := golden(t, "entry-v1.hex", got)
	if !bytes.Equal(got, want) {
		t.Fatalf("encoded entry changed: got\n%x, want\n%x", got, want)
	}
	decoded, err := state.DecodeEntry(want)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "decoded entry", decoded, e)
}

func TestEntry_DecodesToWhatWasEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cmds := make([]state.Command, rapid.IntRange(0, 5).Draw(t, "commands"))
		size := 0
		for i := range cmds {
			cmds[i] = anyCommand(t)
			size += cmds[i].Size()
			if got := len(state.AppendCommand(nil, cmds[i])); got != cmds[i].Size() {
				t.Fatalf("Size of %+v: got %d, want %d", cmds[i], cmds[i].Size(), got)
			}
		}
		e := state.Entry{Term: rapid.Uint64().Draw(t, "term"), Commands: cmds}
		b := state.EncodeEntry(e)
		if head := 2 + len(binary.AppendUvarint(nil, e.Term)); len(b) != size+head {
			t.Fatalf("entry has %d bytes, want the commands' %d and %d", len(b), size, head)
		}
		got, err := state.DecodeEntry(b)
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("got %+v, %v, want %+v", got, err, e)
		}
	})
}

// anyCommand draws any value that fits into an entry, valid or not.
func anyCommand(t *rapid.T) state.Command {
	text := rapid.OneOf(rapid.String(), rapid.Just(strings.Repeat("\xff", 255)), rapid.Just(strings.Repeat("x", 256)))
	str := rapid.Custom(func(t *rapid.T) string { s := text.Draw(t, "text"); return s[:min(len(s), 256)] })
	num := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 300))
	session := state.Session{Node: str.Draw(t, "node"), Disk: str.Draw(t, "disk"), Incarnation: num.Draw(t, "incarnation")}
	name, owner, token := str.Draw(t, "name"), str.Draw(t, "owner"), num.Draw(t, "token")
	ttl := time.Duration(num.Draw(t, "ttl"))
	c := state.Command{Kind: state.Kind(rapid.IntRange(1, 9).Draw(t, "kind"))}
	switch c.Kind {
	case state.KindAcquire:
		c.Name, c.Owner, c.TTL, c.Session = name, owner, ttl, session
	case state.KindRenew:
		c.Name, c.Owner, c.Token, c.TTL = name, owner, token, ttl
	case state.KindShorten:
		c.Name, c.Token, c.TTL = name, token, ttl
	case state.KindRelease:
		c.Name, c.Owner, c.Token = name, owner, token
	case state.KindExpire:
		for range rapid.IntRange(0, 3).Draw(t, "ends") {
			c.Ends = append(c.Ends, state.End{Name: str.Draw(t, "name"), Token: num.Draw(t, "token"), Revision: num.Draw(t, "revision")})
		}
	case state.KindPut:
		c.Name, c.Token = name, token
		if data := rapid.SliceOf(rapid.Byte()).Draw(t, "data"); len(data) > 0 {
			c.Data = data
		}
	case state.KindBreak:
		c.Name = name
	case state.KindReclaim:
		c.Session = session
	}
	return c
}

func TestEntry_MalformedIsRefusedWithNothingApplied(t *testing.T) { // G8
	good := encode(acquire("new", "a", time.Second))
	entry := func(n byte, rest ...byte) []byte { return append([]byte{1, term, n}, rest...) }
	huge := binary.AppendUvarint(nil, 1<<62)
	for _, c := range []struct {
		name  string
		entry []byte
		at    int64
		why   string
		newer bool
	}{
		{"empty", nil, 0, "format is missing", false},
		{"format of the past", []byte{0, term, 0}, 0, "format is 0", false},
		{"format of the future", []byte{2, term, 0}, 0, "format is 2", true},
		{"no term", []byte{1}, 1, "term is missing", false},
		{"no count", []byte{1, term}, 2, "commands is missing", false},
		{"kind 0", append(entry(2, good[3:]...), 0), int64(len(good)), "kind is 0", false},
		{"kind of the future", append(entry(2, good[3:]...), 10), int64(len(good)), "kind is 10", true},
		{"more commands than bytes", entry(3, 9, 9), 2, "number of commands is 3", false},
		{"fewer commands than there are", entry(1, 9, 9), 4, "1 bytes are left", false},
		{"too many commands", append(binary.AppendUvarint([]byte{1, term}, 1<<14+1), bytes.Repeat([]byte{9}, 1<<14+1)...), 2, "at most 16384", false},
		{"too many ends", append(append(entry(1, 5), 0x81, 0x80, 1), make([]byte, 3*(1<<14+1))...), 4, "at most 16384", false},
		{"more ends than bytes", entry(1, 5, 2, 0, 0, 0), 4, "number of ends is 2", false},
		{"padded term", []byte{1, 0x81, 0, 0}, 1, "term is padded", false},
		{"padded count", []byte{1, term, 0x81, 0, 9}, 2, "padded", false},
		{"padded token", entry(1, 6, 1, 'x', 0x81, 0, 0), 6, "token is padded", false},
		{"number of more than 64 bits", entry(1, 6, 1, 'x', 255, 255, 255, 255, 255, 255, 255, 255, 255, 2, 0), 6, "64 bits", false},
		{"name of 257 bytes", append(entry(1, 7, 0x81, 2), make([]byte, 257)...), 4, "name has 257 bytes", false},
		{"name longer than any memory", append(entry(1, 7), huge...), 4, "at most 256", false},
		{"data of 64 KiB and 2 bytes", append(entry(1, 6, 1, 'x', 1, 0x82, 0x80, 4), make([]byte, 1<<16+2)...), 7, "data has 65538 bytes", false},
		{"name cut off", entry(1, 7, 5, 'x'), 4, "name has 5 bytes and 1 are left", false},
		{"session cut off", entry(1, 8, 1, 'n', 1, 'd'), 8, "incarnation is missing", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := state.New("c1")
			grant(t, m, "job", "a")
			before := m.Hash()
			rs, err := m.Apply(m.Index()+1, term, c.entry)
			var fe *state.FormatError
			if !errors.As(err, &fe) || rs != nil {
				t.Fatalf("got %v, %v, want a *FormatError", rs, err)
			}
			if fe.What != "log entry" || fe.Offset != c.at || !strings.Contains(fe.Why, c.why) || fe.Newer != c.newer {
				t.Fatalf("got %#v, want %q at %d, newer %v", fe, c.why, c.at, c.newer)
			}
			if !strings.Contains(fe.Error(), "log entry, byte ") || !strings.Contains(fe.Error(), fe.Why) {
				t.Fatalf("text of the error: got %q", fe)
			}
			same(t, "hash", m.Hash(), before)
		})
	}
}

func TestEntry_EveryCutIsRefused(t *testing.T) { // G8
	b := encode(goldenCommands()...)
	for n := range b {
		if e, err := state.DecodeEntry(b[:n]); err == nil {
			t.Fatalf("first %d of %d bytes: got %+v, want a refusal", n, len(b), e)
		}
	}
}

// What can be written can be read: no argument of a caller may put an entry into
// the log at which every replica stops.
func TestEntry_OversizeFieldsTravelCutAndStayRejected(t *testing.T) { // G8
	long := strings.Repeat("x", 1<<20)
	l := state.Lease{Name: long, Owner: long, Token: 1}
	s := state.Session{Node: long, Disk: long, Incarnation: 1}
	m := state.New("c1")
	live := grant(t, m, long[:255], "a")
	for _, c := range []state.Command{
		acquireIn(long, "a", s), acquire("a", long, time.Second), acquireIn("a", "a", s), renew(l, time.Second),
		shorten(l, time.Second), release(l), put(l, long), put(state.Lease{Name: "a", Token: 1}, long), breakLease(long), reclaim(s),
	} {
		if c.Size() > 64<<10+600 || c.Size() != len(state.AppendCommand(nil, c)) {
			t.Fatalf("kind %d: Size is %d, encoded %d bytes", c.Kind, c.Size(), len(state.AppendCommand(nil, c)))
		}
		if r := do(t, m, c); r.Code != state.Rejected {
			t.Fatalf("kind %d: got %+v, want Rejected", c.Kind, r)
		}
	}
	same(t, "ended by a name too long", len(do(t, m, expire(state.Lease{Name: long, Token: live.Token, Revision: live.Revision})).Ended), 0)
	holds(t, m, live)
}

func TestEncodeEntry_PanicsAtWhatABatcherMustNotDo(t *testing.T) {
	full := slices.Repeat([]state.Command{{Kind: state.KindEpoch}}, 1<<14)
	if e, err := state.DecodeEntry(encode(full...)); err != nil || len(e.Commands) != len(full) {
		t.Fatalf("16384 commands: got %d, %v", len(e.Commands), err)
	}
	ends := state.Command{Kind: state.KindExpire, Ends: make([]state.End, 1<<14)}
	if _, err := state.DecodeEntry(encode(ends)); err != nil {
		t.Fatalf("16384 ends: %v", err)
	}
	for name, cmds := range map[string][]state.Command{
		"too many commands": append(full, full[0]),
		"kind 0":            {{}},
		"unknown kind":      {{Kind: 10}},
		"too many ends":     {{Kind: state.KindExpire, Ends: make([]state.End, 1<<14+1)}},
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "state.") {
					t.Errorf("%s: got panic %q, want one that names the method", name, text)
				}
			}()
			encode(cmds...)
		}()
	}
}

func TestDecodeEntry_GarbageAllocatesLittle(t *testing.T) { // G8
	for name, b := range map[string][]byte{
		"many commands":    append([]byte{1, term, 0xff, 0x7f}, make([]byte, 20000)...),
		"many ends":        append([]byte{1, term, 1, 5, 0xff, 0x7f}, make([]byte, 100)...),
		"enormous numbers": append([]byte{1, term, 1, 5}, binary.AppendUvarint(nil, 1<<62)...),
		"data that is not": {1, term, 1, 6, 1, 'x', 1, 0xff, 0xff, 3},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := state.DecodeEntry(b)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; err == nil || got > 256<<10 {
			t.Errorf("%s: %d bytes allocated for %d, %v", name, got, len(b), err)
		}
	}
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(encode())
	f.Add(encode(goldenCommands()...))
	for _, c := range goldenCommands() {
		f.Add(encode(c))
	}
	f.Add([]byte{2, term, 0})
	f.Add([]byte{1, term, 1, 10})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := state.DecodeEntry(b)
		if err != nil {
			if fe := (*state.FormatError)(nil); !errors.As(err, &fe) {
				t.Fatalf("got %v, want a *FormatError", err)
			}
			return
		}
		if again := state.EncodeEntry(e); !bytes.Equal(again, b) {
			t.Fatalf("not canonical: %x decodes to what encodes as %x", b, again)
		}
		one, two := state.New("c1"), state.New("c1")
		for _, m := range []*state.Machine{one, two} {
			apply(t, m, goldenCommands()...)
			apply(t, m, e.Commands...)
		}
		if one.Hash() != two.Hash() || restored(t, snapshotBytes(t, one)).Hash() != one.Hash() {
			t.Fatalf("machines differ after %+v", e)
		}
	})
}
