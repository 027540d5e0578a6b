package state

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"
)

// ReadSnapshot reads a snapshot from r up to its end. What is not exactly the
// bytes that WriteTo writes for some state is refused whole with a *FormatError:
// a cut or damaged one, bytes behind the end, a newer format, records out of
// order, twice or beyond the limits. An error of r itself is returned wrapped.
// Memory grows with what was read, not with what the snapshot says about itself.
func ReadSnapshot(r io.Reader) (*Snapshot, error) {
	in := &snapshotReader{r: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
	s := &Snapshot{}
	records := in.header(&s.contents)
	var tokens []uint64
	last := ""
	for i := uint64(0); i < records && in.err == nil; i++ {
		l := in.record(s.index, s.next)
		if in.err == nil && i > 0 && l.Name <= last {
			in.fail("name is not after the one before it in byte order")
		}
		last = l.Name
		s.leases.push(l)
		if l.held() {
			s.live++
			tokens = append(tokens, l.Token)
		}
	}
	slices.Sort(tokens)
	if in.err == nil && len(slices.Compact(tokens)) < s.live {
		in.fail("a token is there twice, want each at most once")
	}
	in.end()
	if in.err != nil {
		return nil, in.err
	}
	return s, nil
}

// snapshotReader takes the parts of a snapshot from r. The first error sticks.
type snapshotReader struct {
	r   *bufio.Reader
	sum hash.Hash
	off int64 // of the part that is read
	buf []byte
	err error
}

func (in *snapshotReader) fail(why string) {
	if in.err == nil {
		in.err = &FormatError{What: "snapshot", Offset: in.off, Why: why}
	}
}

// failed records an error of the underlying reader.
func (in *snapshotReader) failed(err error) {
	switch {
	case in.err != nil:
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		in.fail("the end is cut off")
	default:
		in.err = fmt.Errorf("read snapshot: %w", err)
	}
}

// take reads n bytes, which are valid until the next call; nil on an error.
func (in *snapshotReader) take(n int) []byte {
	if in.err != nil {
		return nil
	}
	in.buf = slices.Grow(in.buf[:0], n)[:n]
	if _, err := io.ReadFull(in.r, in.buf); err != nil {
		in.failed(err)
		return nil
	}
	return in.buf
}

// frame reads a length and that many bytes and returns a decoder of them.
func (in *snapshotReader) frame(limit int) *decoder {
	var length []byte
	for in.err == nil && len(length) <= binary.MaxVarintLen64 {
		b, err := in.r.ReadByte()
		if err != nil {
			in.failed(err)
			break
		}
		if length = append(length, b); b < 0x80 {
			break
		}
	}
	d := &decoder{what: "snapshot", base: in.off, b: length}
	n := d.uvarint("length")
	if d.err == nil && n > uint64(limit) {
		d.fail(0, fmt.Sprintf("length is %d, want at most %d", n, limit))
	}
	in.check(d.end())
	part := in.take(int(min(n, uint64(limit))))
	in.sum.Write(length)
	in.sum.Write(part)
	base := in.off + int64(len(length))
	return &decoder{what: "snapshot", base: base, b: part}
}

// check takes over an error of a decoder.
func (in *snapshotReader) check(err error) {
	if in.err == nil {
		in.err = err
	}
}

func (in *snapshotReader) header(c *contents) (records uint64) {
	mark := in.take(len(snapshotMagic) + 1)
	in.sum.Write(mark)
	if in.err == nil {
		in.checkMark(string(mark[:len(snapshotMagic)]), mark[len(snapshotMagic)])
	}
	in.off += int64(len(mark))
	d := in.frame(maxHeader)
	c.clusterID = d.string("cluster id", maxName)
	c.index = d.uvarint("index")
	at := d.off
	c.next = d.uvarint("next token")
	if d.err == nil && (c.next == 0 || c.next > maxToken+1) {
		d.fail(at, fmt.Sprintf("next token is %d, want 1 to 2^53", c.next))
	}
	records = d.uvarint("number of records")
	in.done(d)
	return records
}

func (in *snapshotReader) checkMark(magic string, format byte) {
	switch {
	case magic != snapshotMagic:
		in.fail("this is no snapshot of raftlease's state")
	case format != snapshotFormat:
		in.err = &FormatError{What: "snapshot", Offset: int64(len(magic)), Newer: format > snapshotFormat,
			Why: fmt.Sprintf("format is %d, want %d: use the version of raftlease that wrote it, or a newer one", format, snapshotFormat)}
	}
}

// done ends a part.
func (in *snapshotReader) done(d *decoder) {
	in.check(d.end())
	in.off = d.base + int64(len(d.b))
}

// record reads one record of a state at index with the next token next.
func (in *snapshotReader) record(index, next uint64) *Lease {
	d := in.frame(maxRecord)
	l := &Lease{Name: d.string("name", maxName)}
	var f faults
	f.identifier("name", l.Name)
	flags := d.byte("flags")
	if flags == 0 || flags&^flagsKnown != 0 || flags&(flagHeld|flagSession) == flagSession {
		f.add("flags", fmt.Sprint(flags), "1, 3, 4, 5 or 7") // a session is that of a grant
	}
	l.Revision = d.uvarint("revision")
	if l.Revision > index {
		f.add("revision", fmt.Sprint(l.Revision), fmt.Sprintf("at most the index %d", index))
	}
	if flags&flagHeld != 0 {
		l.Owner = d.string("owner", maxName)
		f.identifier("owner", l.Owner)
		l.Token = d.uvarint("token")
		f.usedToken("token", l.Token, next)
		ms := d.uvarint("ttl")
		if ms == 0 || ms > uint64(maxTTL/time.Millisecond) {
			f.add("ttl", fmt.Sprint(ms, " ms"), "1 ms to 10 years")
		}
		l.TTL = time.Duration(ms) * time.Millisecond
	}
	if flags&flagSession != 0 {
		l.Session = d.session(maxName)
		f.session(l.Session)
	}
	if flags&flagData != 0 {
		l.Data = bytes.Clone(d.bytes("data", maxData))
		l.DataToken = d.uvarint("data token")
		f.usedToken("data token", l.DataToken, next)
		if len(l.Data) == 0 || l.held() && l.DataToken > l.Token {
			f.add("data", fmt.Sprintf("%d bytes of token %d", len(l.Data), l.DataToken), "some, of no token after the live one")
		}
	}
	if f != nil {
		d.fail(0, f.why())
	}
	in.done(d)
	return l
}

func (f *faults) usedToken(field string, token, next uint64) {
	if token == 0 || token >= next {
		f.add(field, fmt.Sprint(token), fmt.Sprintf("1 to below the next token %d", next))
	}
}

// end reads the checksum and makes sure that nothing follows it.
func (in *snapshotReader) end() {
	want := in.sum.Sum(nil)
	got := in.take(sha256.Size)
	if in.err == nil && !bytes.Equal(got, want) {
		in.fail("the checksum does not match: the snapshot is damaged")
	}
	if in.err != nil {
		return
	}
	in.off += sha256.Size
	if _, err := in.r.ReadByte(); err == nil {
		in.fail("there are bytes behind the checksum, want the end")
	} else if err != io.EOF {
		in.failed(err)
	}
}
