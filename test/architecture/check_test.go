package architecture

import (
	"maps"
	"strings"
	"testing"
)

// sound is a graph that breaks no rule.
var sound = Graph{
	module:                       {"fmt", module + "/transport", module + "/internal/granter", module + "/lease", raft, hclog},
	module + "/cmd/raftlease":    {module, module + "/client", "github.com/spf13/cobra"},
	module + "/cmd/raftlease/ui": {"net/http"},
	module + "/client":           {module + "/lease", module + "/transport/rpc", connect},
	module + "/transport":        {raft, hclog, "net"},
	module + "/transport/rpc":    {connect, "net/http"},
	module + "/internal/granter": {module + "/internal/state", module + "/lease", raft},
	module + "/internal/state":   {"fmt", "time"},
	module + "/internal/clock":   {unix, "time"},
	module + "/lease":            {module + "/internal/clock", "time"},
	module + "/lease/leasetest":  {module + "/lease", "testing"},
	raft:                         {hclog, "testing"},
	hclog:                        {"fmt"},
	connect:                      {protobuf + "/proto"},
	"github.com/spf13/cobra":     {"github.com/spf13/pflag"},
	"go.uber.org/zap":            {"fmt"},
	"example.com/harness":        {"example.com/harness/assert"},
	"example.com/harness/assert": {"testing"},
}

func TestCheck_PassesASoundGraph(t *testing.T) {
	for _, rule := range Check(sound, Rooms) {
		t.Error(rule)
	}
}

func TestCheck_NamesTheRuleAndTheChain(t *testing.T) {
	for name, c := range map[string]struct {
		pkg, imports string // the import that is added, relative to the module where it is of it
		want         string // "~" stands for the module
	}{
		"an import upward": {
			"/lease", module + "/transport",
			"room lease may not import room transport: ~/lease → ~/transport",
		},
		"an import of the root": {
			"/transport", module,
			"room transport may not import room .: ~/transport → ~",
		},
		"an import beside": {
			"/transport", module + "/lease",
			"room transport may not import room lease: ~/transport → ~/lease",
		},
		"a room above all, even where any room is allowed": {
			"/test/cluster", module + "/cmd/raftlease/ui",
			"no room may import room cmd/raftlease: ~/test/cluster → ~/cmd/raftlease/ui",
		},
		"a module that is not in the room's list": {
			"/internal/granter", "go.uber.org/zap",
			"room internal/granter may not import module of go.uber.org/zap: ~/internal/granter → go.uber.org/zap",
		},
		"a module that only begins like one in the list": {
			"/internal/clock", unix + "x",
			"room internal/clock may not import module of golang.org/x/sys/unixx",
		},
		"chance in the pure machine": {
			"/internal/state", "math/rand/v2",
			"room internal/state may not import math/rand: ~/internal/state → math/rand/v2",
		},
		"raft in the pure machine": {
			"/internal/state", raft,
			"room internal/state must never reach github.com/hashicorp/raft: ~/internal/state → github.com/hashicorp/raft",
		},
		"a clock in the pure machine, by way of the vocabulary": {
			"/internal/state", module + "/lease",
			"room internal/state must never reach ~/internal/clock: ~/internal/state → ~/lease → ~/internal/clock",
		},
		"a test library in a library, by way of another module": {
			"", "example.com/harness",
			"room . must never reach testing: ~ → example.com/harness → example.com/harness/assert → testing",
		},
		"a test library in a library, by way of a room": {
			"/client", module + "/lease/leasetest",
			"room client must never reach testing: ~/client → ~/lease/leasetest → testing",
		},
		"a command line in a library": {
			"/transport", "github.com/spf13/cobra",
			"room transport must never reach github.com/spf13: ~/transport → github.com/spf13/cobra",
		},
		"raft in the client": {
			"/transport/rpc", raft,
			"room client must never reach github.com/hashicorp/raft: ~/client → ~/transport/rpc → github.com/hashicorp/raft",
		},
		"a room that nobody has put into the table": {
			"/internal/util", "fmt",
			"room internal/util is not in the table: add it to Rooms",
		},
		"a package below a room that is no tree": {
			"/lease/helper", "fmt",
			"room lease/helper is not in the table: add it to Rooms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := maps.Clone(sound)
			pkg := module + c.pkg
			g[pkg] = append(g[pkg][:len(g[pkg]):len(g[pkg])], c.imports)
			want := strings.ReplaceAll(c.want, "~", module)
			broken := Check(g, Rooms)
			for _, rule := range broken {
				if strings.HasPrefix(rule, want) {
					return
				}
			}
			t.Errorf("got %q, want one that begins %q", broken, want)
		})
	}
}
