package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/raftlease/raftlease/client"
)

// patience bounds the wait for what must happen, on a machine of any speed.
const patience = 60 * time.Second

// processes is a cluster whose nodes are processes.
type processes struct {
	t     testing.TB
	dir   string
	peers map[string]string
	jobs  map[string]program // what a node does beside being one, by id
	run   map[string]*process
}

// process is a running node.
type process struct {
	id    string
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed when the process has ended and its output is read

	mu      sync.Mutex
	reports []report
}

// start starts nodes with these ids and waits until all are ready. jobs may be
// nil.
func start(t testing.TB, jobs map[string]program, ids ...string) *processes {
	t.Helper()
	c := &processes{t: t, dir: t.TempDir(), peers: map[string]string{}, jobs: jobs, run: map[string]*process{}}
	for _, id := range ids {
		c.peers[id] = freeAddr(t)
	}
	t.Cleanup(func() {
		for _, p := range c.run {
			c.kill(p)
		}
	})
	c.startAll(ids...)
	return c
}

// startAll starts nodes and waits until they are ready.
func (c *processes) startAll(ids ...string) {
	c.t.Helper()
	for _, id := range ids {
		c.begin(id)
	}
	for _, id := range ids {
		p := c.run[id]
		c.eventually("node "+id+" is ready", func() bool { return p.count("ready") > 0 })
	}
}

// begin starts a node without waiting for it.
func (c *processes) begin(id string) *process {
	c.t.Helper()
	spec := c.jobs[id]
	spec.ID, spec.Dir, spec.Listen, spec.Peers = id, filepath.Join(c.dir, id), c.peers[id], c.peers
	b, err := json.Marshal(spec)
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), nodeEnv+"="+string(b))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	p := &process{id: id, cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.read(stdout)
		_ = cmd.Wait() // how it ended is its killer's business
	}()
	c.run[id] = p
	return p
}

func (p *process) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			p.mu.Lock()
			p.reports = append(p.reports, r)
			p.mu.Unlock()
		}
	}
}

// said returns what the process has reported.
func (p *process) said() []report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.reports)
}

// last returns the last report of one kind.
func (p *process) last(what string) (report, bool) {
	for _, r := range slices.Backward(p.said()) {
		if r.What == what {
			return r, true
		}
	}
	return report{}, false
}

func (p *process) count(what string) int {
	n := 0
	for _, r := range p.said() {
		if r.What == what {
			n++
		}
	}
	return n
}

// kill ends a process without a warning, as a power cut would.
func (c *processes) kill(p *process) {
	c.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
	delete(c.run, p.id)
}

// freeze stops a process until thaw.
func (c *processes) freeze(p *process) { c.signal(p, syscall.SIGSTOP) }
func (c *processes) thaw(p *process)   { c.signal(p, syscall.SIGCONT) }

func (c *processes) signal(p *process, s syscall.Signal) {
	c.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		c.t.Fatalf("signal node %s: %v", p.id, err)
	}
}

// client returns a client of the nodes with these ids, of all when there are
// none.
func (c *processes) client(ids ...string) *client.Client {
	c.t.Helper()
	if len(ids) == 0 {
		ids = slices.Sorted(maps.Keys(c.peers))
	}
	var addrs []string
	for _, id := range ids {
		addrs = append(addrs, c.peers[id])
	}
	cl, err := client.Open(client.Config{Addrs: addrs, AttemptTimeout: 2 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { cl.Close() })
	return cl
}

func (c *processes) eventually(what string, ok func() bool) {
	c.t.Helper()
	ctx := testContext(c.t)
	for !ok() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			for id, p := range c.run {
				c.t.Logf("node %s: %+v", id, p.said())
			}
			c.t.Fatalf("waited %v and it did not happen: %s", patience, what)
		}
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func freeAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
