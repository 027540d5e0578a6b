package state_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/raftlease/raftlease/internal/state"
)

// The parts of a snapshot, written down by hand.

func num(v uint64) []byte   { return binary.AppendUvarint(nil, v) }
func str(s string) []byte   { return append(num(uint64(len(s))), s...) }
func head(b []byte) []byte  { return append([]byte("RLSTATE\x01"), b...) }
func frame(b []byte) []byte { return str(string(b)) }

func sealed(parts ...[]byte) []byte {
	b := slices.Concat(parts...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func header(records uint64) []byte {
	return head(frame(slices.Concat(str("c1"), num(100), num(50), num(records))))
}

func record(name string, flags byte, revision uint64, rest ...[]byte) []byte {
	return frame(slices.Concat(str(name), []byte{flags}, num(revision), slices.Concat(rest...)))
}

func heldRecord(name string, token uint64) []byte {
	return record(name, 1, 9, str("owner"), num(token), num(1000))
}

// refused fails unless m refuses b with a *FormatError and stays as it is.
func refused(t testing.TB, m *state.Machine, b []byte) *state.FormatError {
	t.Helper()
	before := m.Hash()
	err := m.Restore(bytes.NewReader(b))
	var fe *state.FormatError
	if !errors.As(err, &fe) || fe.What != "snapshot" {
		t.Fatalf("Restore: got %v, want a *FormatError", err)
	}
	if m.Hash() != before {
		t.Fatalf("Restore changed the state although it refused: %v", err)
	}
	return fe
}

func TestRestore_EveryCutAndEveryFlippedBitIsRefused(t *testing.T) { // case 25
	b := snapshotBytes(t, goldenMachine(t))
	m := state.New("")
	grant(t, m, "job", "a")
	for n := range b {
		refused(t, m, b[:n])
	}
	for i := range b {
		for bit := range 8 {
			damaged := slices.Clone(b)
			damaged[i] ^= 1 << bit
			refused(t, m, damaged)
		}
	}
	refused(t, m, append(slices.Clone(b), 0))
	refused(t, m, append(slices.Clone(b), b...))
	if err := m.Restore(bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
}

// All of these have a right checksum: the rule itself has to refuse them.
func TestRestore_RefusesWhatNoStateWrites(t *testing.T) { // case 25, G2, G8
	held, long := heldRecord("a", 1), strings.Repeat("x", 256)
	for _, c := range []struct {
		why string
		b   []byte
		at  int64 // -1: not looked at
	}{
		{"no snapshot of raftlease", sealed([]byte("NOTHING\x01"), frame(nil)), 0},
		{"format is 2", sealed([]byte("RLSTATE\x02"), frame(nil)), 7},
		{"format is 0", sealed([]byte("RLSTATE\x00"), frame(nil)), 7},
		{"end is cut off", header(0), 15},
		{"end is cut off", slices.Concat(header(2), held), 29},
		{"behind the checksum", append(sealed(header(1), held), 'x'), -1},
		{"checksum does not match", sealed(header(0), held), 15},
		{"length is 400", sealed(head(frame(make([]byte, 400)))), 8},
		{"length is 1099511627776", sealed(header(1), num(1<<40)), 15},
		{"length is padded", sealed(header(1), []byte{0x81, 0}), 15},
		{"length is larger than 64", sealed(header(1), bytes.Repeat([]byte{0xff}, 11)), 15},
		{"cluster id has 256", sealed(head(frame(slices.Concat(str(long), num(1), num(1), num(0))))), -1},
		{"next token is 0", sealed(head(frame(slices.Concat(str("c"), num(1), num(0), num(0))))), 12},
		{"next token is 9007199254740993", sealed(head(frame(slices.Concat(str("c"), num(1), num(1<<53+1), num(0))))), 12},
		{"records is missing", sealed(head(frame(slices.Concat(str("c"), num(1), num(1))))), -1},
		{"bytes are left", sealed(head(frame(slices.Concat(str("c"), num(1), num(1), num(0), num(0))))), -1},
		{"byte order", sealed(header(2), heldRecord("b", 1), heldRecord("a", 2)), -1},
		{"byte order", sealed(header(2), heldRecord("a", 1), heldRecord("a", 2)), -1},
		{"token is there twice", sealed(header(3), heldRecord("a", 7), heldRecord("b", 3), heldRecord("c", 7)), -1},
		{"name is empty", sealed(header(1), heldRecord("", 1)), -1},
		{"name has 256", sealed(header(1), heldRecord(long, 1)), -1},
		{"no control", sealed(header(1), heldRecord("a\n", 1)), -1},
		{"valid UTF-8", sealed(header(1), heldRecord("\xff", 1)), -1},
		{"flags is 0", sealed(header(1), record("a", 0, 9)), 16},
		{"flags is 2", sealed(header(1), record("a", 2, 9, str("n"), str("d"), num(1))), 16},
		{"flags is 6", sealed(header(1), record("a", 6, 9, str("n"), str("d"), num(1), str("x"), num(1))), 16},
		{"flags is 9", sealed(header(1), record("a", 9, 9, str("o"), num(1), num(1))), 16},
		{"revision is 101", sealed(header(1), record("a", 1, 101, str("o"), num(1), num(1))), 16},
		{"owner is empty", sealed(header(1), record("a", 1, 9, str(""), num(1), num(1))), 16},
		{"owner has 256", sealed(header(1), record("a", 1, 9, str(long), num(1), num(1))), -1},
		{"token is 0", sealed(header(1), heldRecord("a", 0)), 16},
		{"token is 50", sealed(header(1), heldRecord("a", 50)), 16},
		{"ttl is 0 ms", sealed(header(1), record("a", 1, 9, str("o"), num(1), num(0))), 16},
		{"ttl is 315360000001 ms", sealed(header(1), record("a", 1, 9, str("o"), num(1), num(315360000001))), 16},
		{"ttl is 18446744073709551615 ms", sealed(header(1), record("a", 1, 9, str("o"), num(1), num(1<<64-1))), 16},
		{"session disk is empty", sealed(header(1), record("a", 3, 9, str("o"), num(1), num(1), str("n"), str(""), num(1))), 16},
		{"session node is empty", sealed(header(1), record("a", 3, 9, str("o"), num(1), num(1), str(""), str(""), num(0))), 16},
		{"data is 0 bytes", sealed(header(1), record("a", 4, 9, str(""), num(1))), 16},
		{"data token is 0", sealed(header(1), record("a", 4, 9, str("x"), num(0))), 16},
		{"data token is 50", sealed(header(1), record("a", 4, 9, str("x"), num(50))), 16},
		{"data is 1 bytes of token 5", sealed(header(1), record("a", 5, 9, str("o"), num(4), num(1), str("x"), num(5))), 16},
		{"data has 65537", sealed(header(1), record("a", 4, 9, str(strings.Repeat("x", 1<<16+1)), num(1))), -1},
		{"1 bytes are left", sealed(header(1), record("a", 4, 9, str("x"), num(1), []byte{0})), -1},
	} {
		t.Run(c.why, func(t *testing.T) {
			fe := refused(t, goldenMachine(t), c.b)
			if !strings.Contains(fe.Why, c.why) || c.at >= 0 && fe.Offset != c.at || fe.Newer != (c.why == "format is 2") {
				t.Fatalf("got %#v, want %q at %d", fe, c.why, c.at)
			}
		})
	}
	good := sealed(header(2), held, record("b", 7, 100, str("o"), num(49), num(1), str("n"), str("d"), num(1), str("x"), num(49)))
	same(t, "what these are variations of", snapshotBytes(t, restored(t, good)), good)
}

func TestRestore_GarbageAllocatesLittle(t *testing.T) { // G8
	for name, b := range map[string][]byte{
		"records that are not":   sealed(header(1 << 62)),
		"a long part that stops": sealed(header(1), num(64<<10)),
		"an enormous part":       sealed(header(1), num(1<<62)),
	} {
		m := state.New("")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := m.Restore(bytes.NewReader(b))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; err == nil || got > 256<<10 {
			t.Errorf("%s: %d bytes allocated, %v", name, got, err)
		}
	}
}

func FuzzRestore(f *testing.F) {
	whole := snapshotBytes(f, goldenMachine(f))
	body := whole[:len(whole)-sha256.Size]
	f.Add(whole, false)
	f.Add(body, true)
	f.Add(slices.Concat(header(2), heldRecord("a", 1), heldRecord("b", 2)), true)
	f.Add(slices.Concat(header(1), record("a", 4, 9, str("x"), num(1))), true)
	f.Add(bytes.Replace(body, []byte("RLSTATE\x01"), []byte("RLSTATE\x02"), 1), true)
	f.Add(body[:bits.Len(uint(len(body)))*20], true)
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal { // so that more than the checksum is tried
			b = sealed(b)
		}
		m := state.New("")
		if err := m.Restore(bytes.NewReader(b)); err != nil {
			refused(t, m, b)
			return
		}
		if again := snapshotBytes(t, m); !bytes.Equal(again, b) {
			t.Fatalf("not canonical: %x is written as %x", b, again)
		}
		for _, l := range m.List("") {
			do(t, m, renew(l, l.TTL))
		}
		apply(t, m, goldenCommands()...)
		if restored(t, snapshotBytes(t, m)).Hash() != m.Hash() {
			t.Fatal("a state that was restored does not restore")
		}
	})
}
