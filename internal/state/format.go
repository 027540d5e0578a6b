package state

import (
	"encoding/binary"
	"fmt"
)

// FormatError says that a log entry or a snapshot is not understood by this
// build. Nothing of it was applied.
type FormatError struct {
	What   string // "log entry" or "snapshot"
	Offset int64  // of the byte at fault
	Why    string // the field, its value and what is allowed
	Newer  bool   // it has the mark of a format or a command that this build does not know
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s, byte %d: %s", e.What, e.Offset, e.Why)
}

// decoder takes the primitives of both formats from b. The first fault sticks:
// everything after it reads as zero.
type decoder struct {
	what string
	base int64 // offset of b in the whole
	b    []byte
	off  int
	err  *FormatError
}

// fail records a fault at offset at of b.
func (d *decoder) fail(at int, why string) {
	if d.err == nil {
		d.err = &FormatError{What: d.what, Offset: d.base + int64(at), Why: why}
	}
}

func (d *decoder) left() int { return len(d.b) - d.off }

func (d *decoder) byte(field string) byte {
	if d.err == nil && d.left() == 0 {
		d.fail(d.off, field+" is missing: the end is cut off")
	}
	if d.err != nil {
		return 0
	}
	d.off++
	return d.b[d.off-1]
}

// uvarint takes a number in its shortest form.
func (d *decoder) uvarint(field string) uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.b[d.off:])
	switch {
	case n == 0:
		d.fail(d.off, field+" is missing: the end is cut off")
	case n < 0:
		d.fail(d.off, field+" is larger than 64 bits")
	case n > 1 && d.b[d.off+n-1] == 0:
		d.fail(d.off, field+" is padded, want the shortest form")
	default:
		d.off += n
		return v
	}
	return 0
}

// bytes takes a length of at most limit and that many bytes, which share the
// memory of b.
func (d *decoder) bytes(field string, limit int) []byte {
	at := d.off
	n := d.uvarint(field)
	switch {
	case d.err != nil:
	case n > uint64(limit):
		d.fail(at, fmt.Sprintf("%s has %d bytes, want at most %d", field, n, limit))
	case n > uint64(d.left()):
		d.fail(at, fmt.Sprintf("%s has %d bytes and %d are left: the end is cut off", field, n, d.left()))
	default:
		d.off += int(n)
		return d.b[d.off-int(n) : d.off : d.off]
	}
	return nil
}

func (d *decoder) string(field string, limit int) string { return string(d.bytes(field, limit)) }

// count takes the number of things that follow, each of at least size bytes, so
// that no number alone makes anybody allocate.
func (d *decoder) count(field string, limit, size int) int {
	at := d.off
	n := d.uvarint(field)
	switch {
	case d.err != nil:
	case n > uint64(limit):
		d.fail(at, fmt.Sprintf("number of %s is %d, want at most %d", field, n, limit))
	case n > uint64(d.left()/size):
		d.fail(at, fmt.Sprintf("number of %s is %d and %d bytes are left: the end is cut off", field, n, d.left()))
	default:
		return int(n)
	}
	return 0
}

func (d *decoder) session(limit int) Session {
	return Session{
		Node:        d.string("session node", limit),
		Disk:        d.string("session disk", limit),
		Incarnation: d.uvarint("session incarnation"),
	}
}

// end refuses what is left.
func (d *decoder) end() error {
	if d.err == nil && d.left() > 0 {
		d.fail(d.off, fmt.Sprintf("%d bytes are left, want the end", d.left()))
	}
	if d.err != nil {
		return d.err
	}
	return nil
}

// appendString appends s, cut to limit bytes.
func appendString[T string | []byte](b []byte, s T, limit int) []byte {
	s = s[:min(len(s), limit)]
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendSession(b []byte, s Session, limit int) []byte {
	b = appendString(b, s.Node, limit)
	b = appendString(b, s.Disk, limit)
	return binary.AppendUvarint(b, s.Incarnation)
}

func sizeString(n, limit int) int {
	n = min(n, limit)
	return sizeUvarint(uint64(n)) + n
}

func sizeSession(s Session, limit int) int {
	return sizeString(len(s.Node), limit) + sizeString(len(s.Disk), limit) + sizeUvarint(s.Incarnation)
}

func sizeUvarint(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
