package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// format is what stdout gets. It is a pflag.Value.
type format struct{ json bool }

// String implements pflag.Value.
func (f *format) String() string {
	if f.json {
		return "json"
	}
	return "table"
}

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	if s != "table" && s != "json" {
		return fmt.Errorf("want table or json")
	}
	f.json = s == "json"
	return nil
}

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

// show writes one document: v as JSON, or what table writes for people.
func (c *cli) show(v any, table func(w io.Writer)) error {
	if !c.output.json {
		tab := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		table(tab)
		return tab.Flush()
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(c.out, "%s\n", text)
	}
	return err
}

// row writes the cells of a line of a table.
func row(w io.Writer, cells ...any) {
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, cell)
	}
	fmt.Fprintln(w)
}

// seconds is a duration as protobuf has it in JSON.
type seconds time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s seconds) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(time.Duration(s).Seconds(), 'f', -1, 64) + "s"), nil
}

// grantView is a grant as it is shown. Remaining is the holder's count.
type grantView struct {
	Name      string  `json:"name"`
	Owner     string  `json:"owner"`
	Token     uint64  `json:"token"`
	TTL       seconds `json:"ttl,omitzero"`
	Remaining seconds `json:"remaining,omitzero"`
}

func viewGrant(g lease.Grant) grantView {
	return grantView{g.Name, g.Owner, g.Token, seconds(g.TTL), seconds(g.Remaining())}
}

func (c *cli) showGrant(g lease.Grant) error {
	v := viewGrant(g)
	return c.show(v, func(w io.Writer) {
		row(w, "NAME", "OWNER", "TOKEN", "TTL", "REMAINING")
		row(w, v.Name, v.Owner, v.Token, g.TTL, short(time.Duration(v.Remaining)))
	})
}

// leaseView is raftlease.v1.Lease, with numbers as JSON numbers.
type leaseView struct {
	Name      string  `json:"name"`
	Owner     string  `json:"owner"`
	Token     uint64  `json:"token"`
	TTL       seconds `json:"ttl,omitzero"`
	Remaining seconds `json:"remaining,omitzero"`
	Data      []byte  `json:"data,omitempty"`
	DataToken uint64  `json:"dataToken,omitzero"`
	Index     uint64  `json:"index"`
}

func viewLease(r lease.Record) leaseView {
	return leaseView{r.Name, r.Owner, r.Token, seconds(r.TTL), seconds(r.Remaining), r.Data, r.DataToken, r.Index}
}

func rowOfRecord(w io.Writer, r lease.Record) {
	owner, token, data := "-", "-", "-"
	if r.Held() {
		owner, token = r.Owner, strconv.FormatUint(r.Token, 10)
	}
	if len(r.Data) > 0 {
		data = bytes(len(r.Data))
	}
	row(w, r.Name, owner, token, orDash(r.TTL), orDash(r.Remaining), data)
}

func orDash(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return short(d)
}

// short is d to the precision that people read.
func short(d time.Duration) string {
	switch {
	case d >= 100*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(100 * time.Microsecond)
	}
	return d.String()
}

func bytes(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return strconv.Itoa(n) + " bytes"
}

// line is text that came from elsewhere, on one line and without what a terminal
// would obey.
func line(text string) string {
	q := strconv.Quote(text)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
