package state

import (
	"encoding/binary"
	"fmt"
	"time"
)

const (
	entryFormat = 1

	// Limits of an entry, far above what a batcher packs.
	maxCommands = 1 << 14
	maxEnds     = 1 << 14

	// A field that is too long to be valid travels cut to one byte more than is
	// valid: so it stays Rejected, the entry stays small, and nothing that can
	// be written to the log is refused when it is read (G8).
	wireName = maxName + 1
	wireData = maxData + 1

	minEnd = 3 // bytes of the shortest encoded End
)

// EncodeEntry packs e into the data of one log entry. It panics when there are
// more than 16384 commands, or one that AppendCommand panics at.
func EncodeEntry(e Entry) []byte {
	n := len(e.Commands)
	if n > maxCommands {
		panic(fmt.Sprintf("state.EncodeEntry: %d commands, want at most %d", n, maxCommands))
	}
	size := 1 + sizeUvarint(e.Term) + sizeUvarint(uint64(n))
	for _, c := range e.Commands {
		size += c.Size()
	}
	b := append(make([]byte, 0, size), entryFormat)
	b = binary.AppendUvarint(b, e.Term)
	b = binary.AppendUvarint(b, uint64(n))
	for _, c := range e.Commands {
		b = AppendCommand(b, c)
	}
	return b
}

// AppendCommand appends the encoding of c to b. A name, owner, part of a session
// or data that is longer than what is valid is cut to one byte more than that,
// so that the command is still Rejected. It panics when the Kind is none of
// this package, or with more than 16384 Ends.
func AppendCommand(b []byte, c Command) []byte {
	b = append(b, byte(c.Kind))
	switch c.Kind {
	case KindAcquire:
		b = appendString(b, c.Name, wireName)
		b = appendString(b, c.Owner, wireName)
		b = binary.AppendUvarint(b, uint64(c.TTL))
		return appendSession(b, c.Session, wireName)
	case KindRenew:
		b = appendString(b, c.Name, wireName)
		b = appendString(b, c.Owner, wireName)
		b = binary.AppendUvarint(b, c.Token)
		return binary.AppendUvarint(b, uint64(c.TTL))
	case KindShorten:
		b = appendString(b, c.Name, wireName)
		b = binary.AppendUvarint(b, c.Token)
		return binary.AppendUvarint(b, uint64(c.TTL))
	case KindRelease:
		b = appendString(b, c.Name, wireName)
		b = appendString(b, c.Owner, wireName)
		return binary.AppendUvarint(b, c.Token)
	case KindExpire:
		return appendExpire(b, c)
	case KindPut:
		b = appendString(b, c.Name, wireName)
		b = binary.AppendUvarint(b, c.Token)
		return appendString(b, c.Data, wireData)
	case KindBreak:
		return appendString(b, c.Name, wireName)
	case KindReclaim:
		return appendSession(b, c.Session, wireName)
	case KindEpoch:
		return b
	}
	panic(fmt.Sprintf("state.AppendCommand: kind %d, want %d to %d", c.Kind, KindAcquire, kindEnd-1))
}

func appendExpire(b []byte, c Command) []byte {
	if len(c.Ends) > maxEnds {
		panic(fmt.Sprintf("state.AppendCommand: %d ends, want at most %d", len(c.Ends), maxEnds))
	}
	b = binary.AppendUvarint(b, uint64(len(c.Ends)))
	for _, e := range c.Ends {
		b = appendString(b, e.Name, wireName)
		b = binary.AppendUvarint(b, e.Token)
		b = binary.AppendUvarint(b, e.Revision)
	}
	return b
}

// Size returns the length of c's encoding in bytes.
func (c Command) Size() int {
	name, owner := sizeString(len(c.Name), wireName), sizeString(len(c.Owner), wireName)
	token, ttl := sizeUvarint(c.Token), sizeUvarint(uint64(c.TTL))
	switch c.Kind {
	case KindAcquire:
		return 1 + name + owner + ttl + sizeSession(c.Session, wireName)
	case KindRenew:
		return 1 + name + owner + token + ttl
	case KindShorten:
		return 1 + name + token + ttl
	case KindRelease:
		return 1 + name + owner + token
	case KindExpire:
		n := 1 + sizeUvarint(uint64(len(c.Ends)))
		for _, e := range c.Ends {
			n += sizeString(len(e.Name), wireName) + sizeUvarint(e.Token) + sizeUvarint(e.Revision)
		}
		return n
	case KindPut:
		return 1 + name + token + sizeString(len(c.Data), wireData)
	case KindBreak:
		return 1 + name
	case KindReclaim:
		return 1 + sizeSession(c.Session, wireName)
	}
	return 1
}

// DecodeEntry unpacks the data of a log entry. The entry shares no memory with
// b. The error is a *FormatError for everything that EncodeEntry does not write: an
// unknown version or kind, a field beyond its limits, padding, a cut end, bytes
// behind the end.
func DecodeEntry(b []byte) (Entry, error) {
	d := &decoder{what: "log entry", b: b}
	if v := d.byte("format"); d.err == nil && v != entryFormat {
		d.fail(0, fmt.Sprintf("format is %d, want %d", v, entryFormat))
		d.err.Newer = v > entryFormat
	}
	e := Entry{Term: d.uvarint("term")}
	n := d.count("commands", maxCommands, 1)
	e.Commands = make([]Command, 0, min(n, 1<<10)) // a Command is much larger than its shortest encoding
	for len(e.Commands) < n && d.err == nil {
		e.Commands = append(e.Commands, d.command())
	}
	if err := d.end(); err != nil {
		return Entry{}, err
	}
	return e, nil
}

func (d *decoder) command() Command {
	at := d.off
	c := Command{Kind: Kind(d.byte("kind"))}
	switch c.Kind {
	case KindAcquire:
		c.Name, c.Owner = d.name(), d.owner()
		c.TTL, c.Session = d.ttl(), d.session(wireName)
	case KindRenew:
		c.Name, c.Owner = d.name(), d.owner()
		c.Token, c.TTL = d.token(), d.ttl()
	case KindShorten:
		c.Name, c.Token, c.TTL = d.name(), d.token(), d.ttl()
	case KindRelease:
		c.Name, c.Owner, c.Token = d.name(), d.owner(), d.token()
	case KindExpire:
		c.Ends = d.ends()
	case KindPut:
		c.Name, c.Token = d.name(), d.token()
		c.Data = d.data()
	case KindBreak:
		c.Name = d.name()
	case KindReclaim:
		c.Session = d.session(wireName)
	case KindEpoch:
	default:
		if d.err == nil {
			d.fail(at, fmt.Sprintf("command kind is %d, want %d to %d", c.Kind, KindAcquire, kindEnd-1))
			d.err.Newer = c.Kind >= kindEnd
		}
	}
	return c
}

func (d *decoder) name() string       { return d.string("name", wireName) }
func (d *decoder) owner() string      { return d.string("owner", wireName) }
func (d *decoder) token() uint64      { return d.uvarint("token") }
func (d *decoder) ttl() time.Duration { return time.Duration(d.uvarint("ttl")) }

// data is nil when it is empty.
func (d *decoder) data() []byte {
	return append([]byte(nil), d.bytes("data", wireData)...)
}

func (d *decoder) ends() []End {
	n := d.count("ends", maxEnds, minEnd)
	if n == 0 {
		return nil
	}
	ends := make([]End, 0, n)
	for len(ends) < n && d.err == nil {
		ends = append(ends, End{Name: d.name(), Token: d.token(), Revision: d.uvarint("revision")})
	}
	return ends
}
