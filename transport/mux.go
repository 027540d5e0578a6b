package transport

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Mux is one listening port that tells raft connections from HTTP ones by their
// first byte. Safe for concurrent use.
type Mux struct {
	cfg  Config
	ln   net.Listener
	http *queue
	wg   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	raft    *Raft      // nil while the node is in no cluster
	unknown []net.Conn // have not said what they are, the oldest first
}

// Listen opens the port. HTTP connections wait for somebody to accept them from
// HTTP; raft connections are refused as "not in a cluster yet" until NewRaft.
// Errors name the address: one that is in use, one that is not loopback without
// Insecure.
func Listen(cfg Config) (*Mux, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	ln, err := bind(cfg)
	if err != nil {
		return nil, err
	}
	m := &Mux{cfg: cfg, ln: ln, http: newQueue(ln.Addr())}
	m.wg.Go(m.accept)
	return m, nil
}

// Addr returns the address listened on, with the port that was taken.
func (m *Mux) Addr() net.Addr { return m.ln.Addr() }

// HTTP returns the listener of the connections that do not speak raft. Closing
// it refuses them and leaves raft alone.
func (m *Mux) HTTP() net.Listener { return m.http }

// Close gives the port back, closes the Raft and the connections that have not
// said what they are, and waits for its goroutines. HTTP connections that were
// accepted stay with whoever accepted them. Idempotent.
func (m *Mux) Close() error {
	m.mu.Lock()
	m.closed = true
	raft, unknown := m.raft, m.unknown
	m.raft, m.unknown = nil, nil
	m.mu.Unlock()
	err := m.ln.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	m.http.Close()
	for _, c := range unknown {
		c.Close()
	}
	if raft != nil {
		err = errors.Join(err, raft.Close())
	}
	m.wg.Wait()
	return err
}

// acceptPause is the time between two tries when connections cannot be
// accepted, for want of file descriptors for example.
const acceptPause = 50 * time.Millisecond

func (m *Mux) accept() {
	for {
		conn, err := m.ln.Accept()
		if err == nil {
			if m.enter(conn) {
				m.wg.Go(func() { m.sort(conn) })
			}
			continue
		}
		m.mu.Lock()
		closed := m.closed
		m.mu.Unlock()
		if closed {
			return
		}
		m.cfg.Logger.Warn("accept connection", "addr", m.ln.Addr(), "err", err)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		time.Sleep(acceptPause)
	}
}

// enter notes a new connection. One too many closes the oldest of those that
// keep silent: it had its time.
func (m *Mux) enter(conn net.Conn) bool {
	m.mu.Lock()
	closed := m.closed
	var oldest net.Conn
	if !closed {
		m.unknown = append(m.unknown, conn)
		if len(m.unknown) > m.cfg.MaxUnknown {
			oldest = m.unknown[0]
			m.unknown = m.unknown[1:]
		}
	}
	m.mu.Unlock()
	if closed {
		conn.Close()
	}
	if oldest != nil {
		oldest.Close()
	}
	return !closed
}

// known takes conn off the list; false when it was closed meanwhile.
func (m *Mux) known(conn net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range m.unknown {
		if c == conn {
			m.unknown = append(m.unknown[:i], m.unknown[i+1:]...)
			return !m.closed
		}
	}
	return false
}

// sort reads what conn is and hands it on.
func (m *Mux) sort(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(m.cfg.HelloTimeout))
	var first [1]byte
	if _, err := conn.Read(first[:]); err != nil {
		m.known(conn)
		conn.Close()
		return
	}
	if first[0] == magic {
		m.greet(conn)
		return
	}
	conn.SetDeadline(time.Time{})
	if m.known(conn) {
		m.http.put(&peeked{Conn: conn, first: first[:]})
	}
}

// greet reads the rest of a hello, answers it, and gives an accepted connection
// to raft.
func (m *Mux) greet(conn net.Conn) {
	h, err := readHello(conn)
	m.mu.Lock()
	raft := m.raft
	m.mu.Unlock()
	why, reason := RefusedNotFormed, "not in a cluster yet"
	switch {
	case errors.Is(err, errVersion):
		why, reason = RefusedVersion, err.Error()
	case err != nil:
		why, reason = RefusedHello, err.Error()
	case raft != nil:
		why, reason = answer(h, raft.streams.cfg.Cluster, raft.streams.cfg.ID)
	}
	_, err = conn.Write(appendReply(nil, why, reason))
	if why != accepted {
		m.cfg.Logger.Debug("refused raft connection", "node", h.from, "addr", conn.RemoteAddr(), "err", reason)
	}
	if !m.known(conn) || err != nil || why != accepted {
		conn.Close()
		return
	}
	conn.SetDeadline(time.Time{})
	raft.streams.accept(conn)
}

// leave makes m refuse raft connections again.
func (m *Mux) leave(r *Raft) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.raft == r {
		m.raft = nil
	}
}
