package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// line is one thing that happened.
type line struct {
	Time  float64 `json:"time"` // in seconds since the start
	Act   int     `json:"act"`
	Event string  `json:"event"`
	Node  string  `json:"node,omitempty"`
	Token uint64  `json:"token,omitempty"`
	Ticks int     `json:"ticks,omitempty"`
	Text  string  `json:"text"`

	Checks []check `json:"checks,omitempty"` // of the verdict
	Held   *bool   `json:"held,omitempty"`
}

// narrator tells what happens, to people or as JSON lines.
type narrator struct {
	out   io.Writer
	json  bool
	color bool
	start time.Duration
	act   int
	err   error // of the first write that did not work

	ticks int // accepted and not told yet
	tick  line
}

// Colours of a terminal.
const (
	bold    = "1"
	dim     = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	blue    = "34"
	magenta = "35"
	cyan    = "36"
)

var colours = map[string]string{"a": cyan, "b": magenta, "c": blue}

func (n *narrator) paint(text string, codes ...string) string {
	if !n.color || text == "" {
		return text
	}
	return "\x1b[" + strings.Join(codes, ";") + "m" + text + "\x1b[0m"
}

func (n *narrator) print(format string, args ...any) {
	if _, err := fmt.Fprintf(n.out, format, args...); err != nil && n.err == nil {
		n.err = err
	}
}

// opening says what will be shown.
func (n *narrator) opening(ttl time.Duration, dir string) {
	if n.json {
		n.write(line{Event: "opening", Text: fmt.Sprintf("three nodes on loopback, ttl %v, data in %s", ttl, dir)})
		return
	}
	n.print("%s\n", n.paint("raftlease demo", bold))
	n.print("Three nodes, each a process with a worker beside it. One job, one lease of %v: whoever holds it ticks.\n", ttl)
	n.print("%s\n\n", n.paint("Data in "+dir+", removed at the end. Ctrl-C ends it.", dim))
	n.print("%s\n", n.paint("    time  node  token  what happens", dim))
}

// heading begins an act.
func (n *narrator) heading(act int, title, why string) {
	n.flush()
	n.act = act
	if n.json {
		n.write(line{Event: "act", Text: title})
		return
	}
	n.print("\n%s\n%s\n", n.paint(fmt.Sprintf("Act %d. %s", act, title), bold), n.paint("       "+why, dim))
}

// say tells one thing. node and token may be missing.
func (n *narrator) say(event, node string, token uint64, format string, args ...any) {
	n.flush()
	n.tell(line{Event: event, Node: node, Token: token, Text: fmt.Sprintf(format, args...)})
}

// ticked counts a tick, to be told with the next thing that happens.
func (n *narrator) ticked(node string, token uint64) {
	if n.ticks > 0 && (n.tick.Node != node || n.tick.Token != token) {
		n.flush()
	}
	n.ticks++
	n.tick = line{Event: "ticks", Node: node, Token: token}
}

// flush tells the ticks that were counted.
func (n *narrator) flush() {
	if n.ticks == 0 {
		return
	}
	l := n.tick
	l.Ticks = n.ticks
	l.Text = fmt.Sprintf("the job ticks, %d times", n.ticks)
	if n.ticks == 1 {
		l.Text = "the job ticks, once"
	}
	n.ticks = 0
	n.tell(l)
}

var accents = map[string][]string{
	"killed": {red}, "frozen": {red}, "cut": {red}, "thawed": {green}, "healed": {green}, "started": {green},
	"held": {bold}, "refused": {yellow}, "ended": {yellow}, "ticks": {dim}, "state": {dim},
}

func (n *narrator) tell(l line) {
	if n.json {
		n.write(l)
		return
	}
	node, token := fmt.Sprintf("%4s", l.Node), ""
	if l.Node != "" {
		node = n.paint(node, colours[l.Node], bold)
	}
	if l.Token != 0 {
		token = fmt.Sprint(l.Token)
	}
	n.print("%s  %s  %s  %s\n",
		n.paint(fmt.Sprintf("%8.3f", (now()-n.start).Seconds()), dim),
		node, fmt.Sprintf("%5s", token), n.paint(l.Text, accents[l.Event]...))
}

func (n *narrator) write(l line) {
	l.Time = float64((now() - n.start).Milliseconds()) / 1000
	l.Act = n.act
	text, err := json.Marshal(l)
	if err != nil {
		n.err = err
		return
	}
	n.print("%s\n", text)
}

// verdict shows the checks.
func (n *narrator) verdict(checks []check) {
	n.flush()
	held := len(broken(checks)) == 0
	text := "every promise held"
	if !held {
		text = "A PROMISE WAS BROKEN"
	}
	if n.json {
		n.write(line{Event: "verdict", Checks: checks, Held: &held, Text: text})
		return
	}
	what, evidence := 0, 0
	for _, c := range checks {
		what, evidence = max(what, len(c.What)), max(evidence, len(c.Evidence))
	}
	n.print("\n%s\n", n.paint("Verdict", bold))
	for _, c := range checks {
		mark := n.paint("held  ", green, bold)
		if !c.Held {
			mark = n.paint("BROKEN", red, bold)
		}
		n.print("  %s  %s  %-*s  %s\n", mark, c.Promise, what, c.What, n.paint(c.Evidence, dim))
	}
	color := green
	if !held {
		color = red
	}
	n.print("\n%s\n", n.paint(strings.ToUpper(text[:1])+text[1:]+".", color, bold))
}
