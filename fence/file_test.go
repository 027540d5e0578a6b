package fence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/raftlease/raftlease/lease"
)

func openFile(t testing.TB, path string) *File {
	t.Helper()
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func raise(t testing.TB, m Marks, name string, token, want uint64) {
	t.Helper()
	got, err := m.Raise(bg, name, token)
	if err != nil || got != want {
		t.Errorf("raise %q to %d: %d, %v, want %d", name, token, got, err, want)
	}
}

// G7: what was seen before a crash is still seen after it.
func TestFile_RemembersMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	f := openFile(t, path)
	for _, m := range []Marks{f, NewMemory()} {
		raise(t, m, "x", 7, 7)
		raise(t, m, "x", 5, 7)
		raise(t, m, "ü/y", 1<<53-1, 1<<53-1)
		raise(t, m, "x", 9, 9)
	}
	// Not closed: that is what a crash leaves.
	again := openFile(t, path)
	raise(t, again, "x", 8, 9)
	raise(t, again, "ü/y", 1, 1<<53-1)
	raise(t, again, "z", 1, 1)
}

func TestFile_ClosedIsClosed(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "marks"))
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.Raise(bg, "x", 1); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v, want that it is closed", err)
	}
}

// Cut anywhere, the file has every mark whose line is whole.
func TestFile_CutByACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	f := openFile(t, path)
	for token := uint64(1); token <= 3; token++ {
		raise(t, f, "x", token, token)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		want := max(uint64(strings.Count(string(whole[:cut]), "\n")), 1)
		again := openFile(t, path)
		raise(t, again, "x", 1, want)
		raise(t, again, "x", 4, 4)
		raise(t, openFile(t, path), "x", 1, 4)
	}
}

// Damage is refused, not guessed at (G8).
func TestFile_Damaged(t *testing.T) {
	for _, text := range []string{
		"hello\n", "\n", `{"name":"x","token":0}` + "\n", `{"name":"","token":1}` + "\n",
		`{"name":"x","token":-1}` + "\n", `{"name":"x","token":9007199254740992}` + "\n",
		`{"name":"x","token":7}` + "\n" + "\x00\x00\x00\n",
	} {
		path := filepath.Join(t.TempDir(), "marks")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFile(path)
		if err == nil {
			f.Close()
			t.Errorf("%q is taken", text)
		} else if !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: %v, want the line's number", text, err)
		}
		if kept, _ := os.ReadFile(path); string(kept) != text {
			t.Errorf("%q was changed to %q", text, kept)
		}
	}
}

func TestFile_NoSuchDirectory(t *testing.T) {
	if _, err := OpenFile(filepath.Join(t.TempDir(), "missing", "marks")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that there is no such directory", err)
	}
}

// The highest mark counts, in whatever order a file has them.
func TestFile_HighestLineCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	text := "{\"name\":\"x\",\"token\":9}\n{\"name\":\"x\",\"token\":7}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	raise(t, openFile(t, path), "x", 1, 9)
}

// After an error of the disk nothing is admitted.
func TestFile_WriteFails(t *testing.T) {
	f := openFile(t, filepath.Join(t.TempDir(), "marks"))
	raise(t, f, "x", 7, 7)
	f.file.Close()
	for _, token := range []uint64{8, 7, 9} {
		if got, err := f.Raise(bg, "x", token); err == nil {
			t.Errorf("raise to %d: %d", token, got)
		}
	}
}

func TestFile_StaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	f := openFile(t, path)
	const marks = 2*compactAfter + 100
	for token := uint64(1); token <= marks; token++ {
		raise(t, f, "x", token, token)
	}
	text, err := os.ReadFile(path)
	if n := strings.Count(string(text), "\n"); err != nil || n > compactAfter+10 {
		t.Errorf("%d lines for one name, %v", n, err)
	}
	raise(t, openFile(t, path), "x", 1, marks)
}

func TestMarks_ConcurrentUse(t *testing.T) {
	for _, m := range []Marks{NewMemory(), openFile(t, filepath.Join(t.TempDir(), "marks"))} {
		t.Run(fmt.Sprintf("%T", m), func(t *testing.T) {
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					var last uint64
					for n := range 20 {
						mark, err := m.Raise(bg, "x", uint64(n*8+i+1))
						if err != nil || mark < last || mark < uint64(n*8+i+1) {
							t.Errorf("mark %d after %d, %v", mark, last, err)
						}
						last = mark
					}
				})
			}
			all.Wait()
			raise(t, m, "x", 1, 160)
			raise(t, m, "x", lease.MaxToken, lease.MaxToken)
		})
	}
}
