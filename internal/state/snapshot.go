package state

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"iter"
	"strings"
	"time"
)

const (
	snapshotMagic  = "RLSTATE"
	snapshotFormat = 1

	flagHeld    = 1
	flagSession = 2
	flagData    = 4
	flagsKnown  = flagHeld | flagSession | flagData

	// Upper bounds of the parts of a snapshot, in bytes.
	maxHeader = maxName + 64
	maxRecord = maxData + 4*maxName + 128
)

// Snapshot is the state at one index. It is independent of the Machine it was
// taken from. Reading it is safe for concurrent use; SetClusterID and
// AddTokenGap are not.
type Snapshot struct{ contents }

// ClusterID returns the id of the cluster that the snapshot is of.
func (s *Snapshot) ClusterID() string { return s.clusterID }

// Index returns the index of the last entry in the snapshot.
func (s *Snapshot) Index() uint64 { return s.index }

// NextToken returns the token that the next grant takes; 2^53 when all are used
// up.
func (s *Snapshot) NextToken() uint64 { return s.next }

// Live returns the number of grants.
func (s *Snapshot) Live() int { return s.live }

// All returns the records whose names begin with prefix, in byte order of the
// names.
func (s *Snapshot) All(prefix string) iter.Seq[Lease] {
	return func(yield func(Lease) bool) {
		s.leases.ascend(prefix, func(l *Lease) bool {
			return strings.HasPrefix(l.Name, prefix) && yield(l.copy())
		})
	}
}

// SetClusterID makes s a snapshot of another cluster, so that its machines
// accept it: for moving a backup into a new cluster on purpose. It panics when
// the id is longer than 255 bytes.
func (s *Snapshot) SetClusterID(id string) {
	checkClusterID("SetClusterID", id)
	s.clusterID = id
}

// AddTokenGap raises the next token by n, so that none can come again that was
// handed out after the snapshot was taken (G2). On an error, when fewer than n
// tokens are left below 2^53, s is unchanged.
func (s *Snapshot) AddTokenGap(n uint64) error {
	if most := maxToken - min(s.next, maxToken); n > most {
		return fmt.Errorf("token gap is %d, want at most %d: the next token is %d and tokens end at 2^53-1", n, most, s.next)
	}
	s.next += n
	return nil
}

// Hash returns a hash of the whole state, which is also the last 32 bytes that
// WriteTo writes.
func (s *Snapshot) Hash() [32]byte {
	sum, _, _ := s.write(io.Discard) // which does not fail
	return sum
}

// WriteTo implements io.WriterTo. Equal states write equal bytes.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	_, n, err := s.write(w)
	if err != nil {
		return n, fmt.Errorf("write snapshot: %w", err)
	}
	return n, nil
}

func (s *Snapshot) write(w io.Writer) (sum [32]byte, n int64, err error) {
	out := &summer{w: w, sum: sha256.New()}
	b := bufio.NewWriterSize(out, 64<<10)
	b.WriteString(snapshotMagic) // b keeps the first error for Flush
	b.WriteByte(snapshotFormat)
	var part, length []byte
	frame := func() {
		length = binary.AppendUvarint(length[:0], uint64(len(part)))
		b.Write(length)
		b.Write(part)
	}
	part = appendHeader(part, &s.contents)
	frame()
	s.leases.ascend("", func(l *Lease) bool {
		part = appendRecord(part[:0], l)
		frame()
		return true
	})
	if err := b.Flush(); err != nil {
		return sum, out.n, err
	}
	out.sum.Sum(sum[:0])
	_, err = out.Write(sum[:])
	return sum, out.n, err
}

func appendHeader(b []byte, c *contents) []byte {
	b = appendString(b, c.clusterID, maxName)
	b = binary.AppendUvarint(b, c.index)
	b = binary.AppendUvarint(b, c.next)
	return binary.AppendUvarint(b, uint64(c.leases.n))
}

func appendRecord(b []byte, l *Lease) []byte {
	var flags byte
	if l.held() {
		flags |= flagHeld
	}
	if l.Session != (Session{}) {
		flags |= flagSession
	}
	if len(l.Data) > 0 {
		flags |= flagData
	}
	b = append(appendString(b, l.Name, maxName), flags)
	b = binary.AppendUvarint(b, l.Revision)
	if flags&flagHeld != 0 {
		b = appendString(b, l.Owner, maxName)
		b = binary.AppendUvarint(b, l.Token)
		b = binary.AppendUvarint(b, uint64(l.TTL/time.Millisecond))
	}
	if flags&flagSession != 0 {
		b = appendSession(b, l.Session, maxName)
	}
	if flags&flagData != 0 {
		b = appendString(b, l.Data, maxData)
		b = binary.AppendUvarint(b, l.DataToken)
	}
	return b
}

// summer counts and hashes what it passes on.
type summer struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

// Write implements io.Writer.
func (s *summer) Write(p []byte) (int, error) {
	s.sum.Write(p)
	n, err := s.w.Write(p)
	s.n += int64(n)
	return n, err
}
