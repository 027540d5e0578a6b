package transport

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

var someHello = hello{cluster: "c1", from: "a", to: "b"}

func TestHello_RoundTrip(t *testing.T) {
	long := strings.Repeat("x", maxField)
	for _, want := range []hello{someHello, {long, long, long}, {"\x00", "é", "a@b"}} {
		b := appendHello(nil, want)
		if b[0] != magic {
			t.Fatalf("got first byte %#x, want %#x", b[0], magic)
		}
		r := bytes.NewReader(append(b[1:], "raft"...))
		got, err := readHello(r)
		if err != nil || got != want {
			t.Errorf("got %+v and %v, want %+v", got, err, want)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "raft" {
			t.Errorf("got %q left for raft, want all that follows", rest)
		}
	}
}

func TestHello_Check(t *testing.T) {
	long := strings.Repeat("x", maxField+1)
	for field, h := range map[string]hello{
		"cluster id": {"", "a", "b"}, "own id": {"c", long, "b"}, "peer id": {"c", "a", ""},
	} {
		if err := h.check(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("got %v, want an error that names %s", err, field)
		}
	}
}

func TestReadHello_Refuses(t *testing.T) {
	good := appendHello(nil, someHello)[1:]
	t.Run("every truncation", func(t *testing.T) {
		for n := range good {
			if h, err := readHello(bytes.NewReader(good[:n])); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d bytes: got %+v and %v, want an error of the end", n, h, err)
			}
		}
	})
	t.Run("another version, without reading on", func(t *testing.T) {
		r := bytes.NewReader(append([]byte{version + 1}, good[1:]...))
		if _, err := readHello(r); !errors.Is(err, errVersion) {
			t.Errorf("got %v, want errVersion", err)
		}
		if r.Len() != len(good)-1 {
			t.Errorf("got %d bytes left, want %d", r.Len(), len(good)-1)
		}
	})
	t.Run("an empty field", func(t *testing.T) {
		for _, h := range []hello{{"", "a", "b"}, {"c", "", "b"}, {"c", "a", ""}} {
			if _, err := readHello(bytes.NewReader(appendHello(nil, h)[1:])); err == nil {
				t.Errorf("%+v was accepted", h)
			}
		}
	})
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		name        string
		h           hello
		cluster, id string
		want        Refusal
		says        string
	}{
		{"the node that is meant accepts", hello{"c1", "a", "b"}, "c1", "b", accepted, ""},
		{"a node without a cluster refuses", hello{"c1", "a", "b"}, "", "", RefusedNotFormed, "not in a cluster"},
		{"a node of another cluster refuses", hello{"c2", "a", "b"}, "c1", "b", RefusedCluster, `"c1"`},
		{"another node refuses", hello{"c1", "a", "b"}, "c1", "d", RefusedNode, `"d"`},
		{"the dialler itself refuses", hello{"c1", "a", "b"}, "c1", "a", RefusedSelf, `"a" itself`},
		{"one that uses the dialler's id refuses even if it is meant", hello{"c1", "a", "a"}, "c1", "a", RefusedSelf, `"a" itself`},
		{"another cluster is told before anything else", hello{"c2", "a", "a"}, "c1", "a", RefusedCluster, `"c1"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			why, reason := answer(c.h, c.cluster, c.id)
			if why != c.want || !strings.Contains(reason, c.says) {
				t.Errorf("got %d %q, want %d and a text with %q", why, reason, c.want, c.says)
			}
		})
	}
}

// The numbers go over the wire.
func TestRefusal_Numbers(t *testing.T) {
	got := []Refusal{accepted, RefusedNotFormed, RefusedCluster, RefusedNode, RefusedSelf, RefusedVersion, RefusedHello, RefusedNotSpoken}
	for want, r := range got {
		if int(r) != want {
			t.Errorf("got number %d, want %d", r, want)
		}
	}
}

func TestReply_RoundTrip(t *testing.T) {
	long := strings.Repeat("x", maxField)
	for _, c := range []struct {
		why          Refusal
		reason, want string
	}{
		{accepted, "", ""},
		{RefusedCluster, "this is a member of another", "this is a member of another"},
		{RefusedNode, long + "cut", long},
		{RefusedNode, long[1:] + "é", long[1:]}, // not half a letter
		{firstUnusedNumber + 9, "news", "news"},
		{firstUnusedNumber + 9, "", "refusal 17"},
	} {
		r := bytes.NewReader(append(appendReply(nil, c.why, c.reason), "raft"...))
		why, reason, err := readReply(r)
		if err != nil || why != c.why || reason != c.want {
			t.Errorf("got %d %q %v, want %d %q", why, reason, err, c.why, c.want)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "raft" {
			t.Errorf("got %q left for raft, want all that follows", rest)
		}
	}
}

func TestReadReply_Refuses(t *testing.T) {
	t.Run("every truncation", func(t *testing.T) {
		good := appendReply(nil, RefusedNode, "why")
		for n := range good {
			if _, _, err := readReply(bytes.NewReader(good[:n])); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d bytes: got %v, want an error of the end", n, err)
			}
		}
	})
	t.Run("what no node says", func(t *testing.T) {
		why, reason, err := readReply(strings.NewReader("HTTP/1.1 400 Bad Request\r\n"))
		if why != RefusedNotSpoken || reason == "" || err != nil {
			t.Errorf("got %d %q %v, want %d with a reason", why, reason, err, RefusedNotSpoken)
		}
	})
}

func FuzzReadHello(f *testing.F) {
	f.Add(appendHello(nil, someHello)[1:])
	f.Add([]byte{version + 1})
	f.Add([]byte{version, 1, 'c', 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		h, err := readHello(r)
		if err != nil {
			return
		}
		if err := h.check(); err != nil {
			t.Fatalf("read %+v, which is refused: %v", h, err)
		}
		if used := b[:len(b)-r.Len()]; !bytes.Equal(appendHello(nil, h)[1:], used) {
			t.Fatalf("read %+v from %x, which is not how it is sent", h, used)
		}
	})
}

func FuzzReadReply(f *testing.F) {
	f.Add(appendReply(nil, accepted, ""))
	f.Add(appendReply(nil, RefusedNode, "why"))
	f.Add([]byte{magic, 200, 0})
	f.Add([]byte("HTTP/1.1 400"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		why, reason, err := readReply(r)
		if err != nil {
			return
		}
		if why == accepted && (b[0] != magic || b[1] != 0) {
			t.Fatalf("%x was taken for a yes", b)
		}
		if why != accepted && why < firstUnusedNumber && b[0] == magic {
			if used := b[:len(b)-r.Len()]; !bytes.Equal(appendReply(nil, why, reason), used) && len(reason) > 0 {
				t.Fatalf("read %d %q from %x, which is not how it is sent", why, reason, used)
			}
		}
	})
}
