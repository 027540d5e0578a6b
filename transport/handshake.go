package transport

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// magic is the first byte of a raft connection, in both directions. No HTTP
// request begins with a control character, and no TLS record with this type
// (they are 20 to 24).
const magic = 0x1d

// version of the handshake. The shape of a reply is the same in every version,
// so that any two can tell each other that they do not match.
const version = 1

// maxField is the most bytes of an id in a handshake, by its one length byte.
const maxField = 255

// Refusal says why a raft connection was turned away.
type Refusal uint8

// Refusals. Their numbers are part of the wire format.
const (
	accepted          Refusal = 0
	RefusedNotFormed  Refusal = 1 // the dialled node is in no cluster yet
	RefusedCluster    Refusal = 2 // it is in another cluster
	RefusedNode       Refusal = 3 // it is another node than the one meant
	RefusedSelf       Refusal = 4 // it is the dialler itself, or uses its id
	RefusedVersion    Refusal = 5 // it speaks another version of the handshake
	RefusedHello      Refusal = 6 // it could not make sense of the greeting
	RefusedNotSpoken  Refusal = 7 // what answers there is no raftlease node; never sent
	firstUnusedNumber Refusal = 8
)

// HandshakeError says that the process at Addr would not open a raft connection.
// Dialling again helps only after something was changed, or formed.
type HandshakeError struct {
	Addr    string // dialled
	Cluster string // the dialler's
	From    string // the dialler
	To      string // the node that was meant
	Refusal Refusal
	Reason  string // in the words of the other side
}

// Error implements error.
func (e *HandshakeError) Error() string {
	return fmt.Sprintf("node %q at %q refused raft connection of node %q in cluster %q: %s",
		e.To, e.Addr, e.From, e.Cluster, e.Reason)
}

// hello is what a dialler says: which cluster it belongs to, who it is and whom
// it wants.
type hello struct{ cluster, from, to string }

func (h hello) check() error {
	for _, f := range []struct{ name, value string }{{"cluster id", h.cluster}, {"own id", h.from}, {"peer id", h.to}} {
		if len(f.value) == 0 || len(f.value) > maxField {
			return fmt.Errorf("raft handshake %s is %d bytes, want 1 to %d", f.name, len(f.value), maxField)
		}
	}
	return nil
}

// appendHello appends h as it is sent, with the magic byte.
func appendHello(b []byte, h hello) []byte {
	b = append(b, magic, version)
	for _, s := range []string{h.cluster, h.from, h.to} {
		b = append(append(b, byte(len(s))), s...)
	}
	return b
}

var errVersion = errors.New("unknown version")

// readHello reads what follows the magic byte: at most 769 bytes. It is
// errVersion after a version byte that it does not know.
func readHello(r io.Reader) (h hello, err error) {
	var v [1]byte
	if _, err := io.ReadFull(r, v[:]); err != nil {
		return h, err
	}
	if v[0] != version {
		return h, fmt.Errorf("%w %d", errVersion, v[0])
	}
	for _, s := range []*string{&h.cluster, &h.from, &h.to} {
		if *s, err = readField(r); err != nil {
			return h, err
		}
	}
	return h, h.check()
}

func readField(r io.Reader) (string, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", err
	}
	b := make([]byte, n[0])
	_, err := io.ReadFull(r, b)
	return string(b), err
}

// answer decides over h for the node id of cluster. The text goes to the
// dialler.
func answer(h hello, cluster, id string) (Refusal, string) {
	switch {
	case cluster == "" || id == "":
		return RefusedNotFormed, "not in a cluster yet"
	case h.cluster != cluster:
		return RefusedCluster, fmt.Sprintf("this is a member of cluster %q", cluster)
	case h.from == id:
		return RefusedSelf, fmt.Sprintf("this is node %q itself: two nodes use one id, or an address is wrong", id)
	case h.to != id:
		return RefusedNode, fmt.Sprintf("this is node %q: the address of %q is wrong", id, h.to)
	}
	return accepted, ""
}

// appendReply appends an answer as it is sent.
func appendReply(b []byte, why Refusal, reason string) []byte {
	if len(reason) > maxField {
		reason = strings.ToValidUTF8(reason[:maxField], "") // not half a letter
	}
	return append(append(b, magic, byte(why), byte(len(reason))), reason...)
}

// readReply reads an answer: at most 258 bytes. An answer that no node gives is
// RefusedNotSpoken.
func readReply(r io.Reader) (Refusal, string, error) {
	var head [3]byte
	if _, err := io.ReadFull(r, head[:1]); err != nil {
		return 0, "", err
	}
	if head[0] != magic {
		return RefusedNotSpoken, "what answers there does not speak raftlease's raft stream", nil
	}
	if _, err := io.ReadFull(r, head[1:]); err != nil {
		return 0, "", err
	}
	reason := make([]byte, head[2])
	if _, err := io.ReadFull(r, reason); err != nil {
		return 0, "", err
	}
	why := Refusal(head[1])
	if why >= firstUnusedNumber && len(reason) == 0 {
		reason = fmt.Appendf(nil, "refusal %d", why)
	}
	return why, string(reason), nil
}
