package fence

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// compactAfter is how many lines a file may have beyond two for each name.
const compactAfter = 256

// File is Marks in one file, for a resource on the same disk. Raise returns when
// the mark is synced; marks that are seen again cost no write. One process at a
// time may use the file. Safe for concurrent use.
//
// The file has one JSON object a line. A line that was cut short by a crash was
// never acknowledged and is dropped; any other damage is refused.
type File struct {
	path string

	mu    sync.Mutex
	file  *os.File
	marks map[string]uint64
	lines int
	bad   error // after a write whose outcome is unknown
}

// line is one mark in a File.
type line struct {
	Name  string `json:"name"`
	Token uint64 `json:"token"`
}

// OpenFile opens the marks at path, or makes the file where there is none.
func OpenFile(path string) (*File, error) {
	f := &File{path: path, marks: map[string]uint64{}}
	if err := f.read(); err != nil {
		return nil, fmt.Errorf("open fencing marks %q: %w", path, err)
	}
	// Written anew, it ends with a whole line again.
	if err := f.compact(); err != nil {
		return nil, fmt.Errorf("open fencing marks %q: %w", path, err)
	}
	return f, nil
}

// read loads the marks.
func (f *File) read() error {
	file, err := os.Open(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReader(file)
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what has no end of line was never acknowledged
		}
		if err != nil {
			return err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("line %d: %w; restore the file, or raise every mark above all tokens in use", n, err)
		}
		if err := check(l.Name, l.Token); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		f.marks[l.Name] = max(f.marks[l.Name], l.Token)
	}
}

// Raise implements Marks. After an error of the disk every call returns it: what
// the file holds is unknown until it is opened again.
func (f *File) Raise(_ context.Context, name string, token uint64) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bad != nil {
		return 0, f.bad
	}
	if mark := f.marks[name]; mark >= token {
		return mark, nil
	}
	if err := f.append(line{Name: name, Token: token}); err != nil {
		f.bad = fmt.Errorf("write fencing marks %q, open them again: %w", f.path, err)
		return 0, f.bad
	}
	f.marks[name] = token
	return token, nil
}

func (f *File) append(l line) error {
	if f.lines > 2*len(f.marks)+compactAfter {
		if err := f.compact(); err != nil {
			return err
		}
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if _, err := f.file.Write(append(text, '\n')); err != nil {
		return err
	}
	f.lines++
	return f.file.Sync()
}

// compact writes a new file with one line for each name and puts it in place of
// the old one.
func (f *File) compact() error {
	file, err := os.OpenFile(f.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	enc := json.NewEncoder(w)
	for name, token := range f.marks {
		err = errors.Join(err, enc.Encode(line{Name: name, Token: token}))
	}
	if err = errors.Join(err, w.Flush(), file.Sync()); err == nil {
		err = os.Rename(file.Name(), f.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(f.path))
	}
	if err != nil {
		return errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	if f.file != nil {
		err = f.file.Close()
	}
	f.file, f.lines = file, len(f.marks)
	return err
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close closes the file. It is idempotent; later calls of Raise return an error.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	f.bad = fmt.Errorf("fencing marks %q: %w", f.path, os.ErrClosed)
	return err
}
