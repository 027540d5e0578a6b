package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/raftlease/raftlease/client"
	"github.com/raftlease/raftlease/lease"
)

// G8: all faults at once, each by its field.
func TestConfig_Validate(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  client.Config
		want []string
	}{
		"nothing": {client.Config{}, []string{"Addrs"}},
		"good addresses": {client.Config{Addrs: []string{
			"localhost:1", "a-1.example.org:65535", "127.0.0.1:7000", "[::1]:7000", "node_1:7000",
		}}, nil},
		"bad addresses": {client.Config{Addrs: []string{
			"", "host", ":7000", "host:", "host:0", "host:65536", "host:http", "a:7000,b:7000", "http://a:7000", "user@a:7000", "a/b:7000", "::1:7000",
		}}, []string{
			"Addrs[0]", "Addrs[1]", "Addrs[2]", "Addrs[3]", "Addrs[4]", "Addrs[5]", "Addrs[6]", "Addrs[7]", "Addrs[8]", "Addrs[9]", "Addrs[10]", "Addrs[11]",
		}},
		"everything": {client.Config{
			Addrs: []string{"a:1", "b"}, Limits: lease.Limits{MinTTL: time.Hour, MaxTTL: time.Minute}, AttemptTimeout: -1,
		}, []string{"Addrs[1]", "Limits", "AttemptTimeout"}},
		"limits below a millisecond": {client.Config{Addrs: []string{"a:1"}, Limits: lease.Limits{MinTTL: 1}}, []string{"Limits"}},
		"limits above a year":        {client.Config{Addrs: []string{"a:1"}, Limits: lease.Limits{MaxTTL: 366 * 24 * time.Hour}}, []string{"Limits"}},
	} {
		t.Run(name, func(t *testing.T) {
			cl, err := client.Open(c.cfg)
			if len(c.want) == 0 {
				if err != nil {
					t.Fatalf("open: %v", err)
				}
				cl.Close()
				return
			}
			var invalid *lease.InvalidError
			if cl != nil || !errors.As(err, &invalid) {
				t.Fatalf("open: %v, %v, want a *lease.InvalidError", cl, err)
			}
			var got []string
			for _, f := range invalid.Faults {
				got = append(got, f.Field)
			}
			if len(got) != len(c.want) {
				t.Fatalf("faults of %q, want %q", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("fault %d is of %q, want %q", i, got[i], c.want[i])
				}
			}
		})
	}
}

func TestDial_NamesTheAddress(t *testing.T) {
	_, err := client.Dial("a:1", "b")
	if got, want := err.Error(), `invalid argument: Addrs[1] is "b", want host:port with a port of 1 to 65535`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
