package demo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Command is the command of this program that calls Child.
const Command = "demo-node"

const (
	outbox    = 4096 // orders that a frozen child may be behind
	lastLines = 20   // of a child's log that are kept
)

// process is a child while it runs.
type process struct {
	node   string
	cmd    *exec.Cmd
	orders chan order
	gone   chan struct{} // closed when it has exited and all it said was passed on
	work   sync.WaitGroup
	log    *tail
}

// spoken is a report with who said it.
type spoken struct {
	by *process
	report
}

// startProcess starts a child. All that it says goes to hear, last of all a
// reportExited; mine takes the answers to orderWhose.
func startProcess(p Part, hear chan<- spoken, mine func(node string, port, peer int)) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &process{node: p.ID, orders: make(chan order, outbox), gone: make(chan struct{}), log: &tail{}}
	c.cmd = exec.Command(exe, Command)
	c.cmd.Env = childEnvironment()
	c.cmd.SysProcAttr = childAttributes()
	c.cmd.Stderr = c.log
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start node %s: %w", p.ID, err)
	}
	c.order(order{Do: orderStart, Part: &p})
	c.work.Go(func() { c.write(in) })
	c.work.Go(func() {
		c.read(out, hear, mine)
		err := c.cmd.Wait()
		hear <- spoken{c, report{Kind: reportExited, At: now(), Why: fmt.Sprint(err)}}
		close(c.gone)
	})
	return c, nil
}

// childEnvironment is the environment without what would set flags.
func childEnvironment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "RAFTLEASE_") {
			env = append(env, v)
		}
	}
	return env
}

// order tells the child something. It does not wait: a child that is so far
// behind that there is no room will never read it.
func (c *process) order(o order) {
	select {
	case c.orders <- o:
	default:
	}
}

func (c *process) write(in io.WriteCloser) {
	defer in.Close()
	to := json.NewEncoder(in)
	for {
		select {
		case o := <-c.orders:
			if to.Encode(o) != nil {
				return // it has exited, which is reported
			}
		case <-c.gone:
			return
		}
	}
}

func (c *process) read(out io.Reader, hear chan<- spoken, mine func(node string, port, peer int)) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			r = report{Kind: reportGarbled, Why: fmt.Sprintf("%q: %v", lines.Text(), err)}
		}
		if r.Kind == reportMine {
			mine(c.node, r.Port, r.Peer)
			continue
		}
		hear <- spoken{c, r}
	}
}

// kill ends the child as a crash would, frozen or not.
func (c *process) kill() { _ = c.cmd.Process.Kill() } // it has exited otherwise

// wait returns when the child has exited and nothing of it is left.
func (c *process) wait() {
	<-c.gone
	c.work.Wait()
}

// tail keeps the last lines that were written to it. Safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
	part  string
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(t.part+string(p), "\n")
	t.part = lines[len(lines)-1]
	t.lines = append(t.lines, lines[:len(lines)-1]...)
	t.lines = t.lines[max(0, len(t.lines)-lastLines):]
	return len(p), nil
}

func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...)
}
