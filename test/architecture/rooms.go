package architecture

// module is the import path that all rooms are below.
const module = "github.com/raftlease/raftlease"

// Room is a package of the module, or a tree of packages, with what it may
// import besides the standard library and itself.
type Room struct {
	// Path is relative to the module; "." is the root package.
	Path string
	// Tree says that the packages below Path are the same room.
	Tree bool
	// Top says that no other room may import this one.
	Top bool

	// May lists what may be imported: paths of rooms, import paths of other
	// modules' packages (with all below), anyRoom or anyModule.
	May []string
	// NotStd lists packages of the standard library that may not be imported,
	// with all below.
	NotStd []string
	// Never lists import paths that may not be reached over any number of
	// imports, with all below.
	Never []string
}

const (
	anyRoom   = "any room" // except those that are Top
	anyModule = "any module"
)

// Other modules, by the name that the table uses.
const (
	bbolt      = "go.etcd.io/bbolt"
	connect    = "connectrpc.com/connect"
	hclog      = "github.com/hashicorp/go-hclog"
	protobuf   = "google.golang.org/protobuf"
	raft       = "github.com/hashicorp/raft"
	raftboltdb = "github.com/hashicorp/raft-boltdb"
	unix       = "golang.org/x/sys/unix"
)

// generated is the room of the protobuf code.
const generated = "transport/rpc/raftleasev1"

var (
	// heavy is what a service must not get by embedding a node or a client:
	// command lines, drivers, exporters and everything for tests.
	heavy = []string{
		"github.com/spf13", "github.com/prometheus", "modernc.org", "github.com/mattn/go-sqlite3",
		"github.com/jackc", "github.com/lib/pq", "github.com/microsoft/go-mssqldb", "github.com/denisenkom",
		"pgregory.net/rapid", "go.uber.org/goleak", "github.com/anishathalye/porcupine", "github.com/stretchr",
		"testing", "net/http/httptest",
	}
	// consensus is what a process that is no member must not get.
	consensus = []string{raft, raftboltdb, bbolt, "github.com/boltdb"}

	light = append(heavy[:len(heavy):len(heavy)], consensus...)
)

// upstream lists imports of other modules that are known and do no harm: no
// chain is followed over them.
var upstream = map[[2]string]string{
	{raft, "testing"}: "raft keeps its test cluster in a file that is not a test file",
}

// Rooms is the table of docs/DESIGN.md. Imports go downward in it.
var Rooms = []Room{
	{Path: "cmd/raftlease", Tree: true, Top: true, May: []string{anyRoom, anyModule}},
	{Path: "test/cluster", Tree: true, Top: true, May: []string{anyRoom, anyModule}},
	{Path: "test/architecture", Top: true},
	{Path: "bench", Tree: true, Top: true, May: []string{anyRoom, anyModule}},

	{Path: ".", Never: heavy, May: []string{
		"internal/foundation", "internal/granter", "internal/raftstore", "internal/state", "internal/wire", "internal/clock",
		"transport", "transport/rpc", generated, "lease",
		raft, raftboltdb, bbolt, hclog, connect, protobuf,
	}},
	{Path: "client", Tree: true, Never: light, May: []string{
		"internal/wire", "internal/clock", "transport/rpc", generated, "lease", connect, protobuf,
	}},
	{Path: "sqlstore", Tree: true, Never: light, May: []string{"lease", "internal/clock"}},
	{Path: "memstore", Never: light, May: []string{"lease", "internal/clock"}},
	{Path: "fence", Tree: true, Never: light, May: []string{"lease"}},

	{Path: "internal/granter", Never: heavy, May: []string{
		"internal/state", "internal/clock", "lease", generated, raft, hclog, protobuf,
	}},
	{Path: "internal/foundation", Never: heavy, May: []string{"internal/clock", "internal/raftstore", "transport"}},
	{Path: "internal/raftstore", Never: heavy, May: []string{raft, raftboltdb, bbolt, hclog}},
	{Path: "internal/wire", Never: light, May: []string{"lease", generated, connect, protobuf}},

	{Path: "transport", Never: heavy, May: []string{"transport/rpc", generated, raft, hclog, connect, protobuf}},
	{Path: "transport/memnet", Never: heavy, May: []string{"transport"}},
	{Path: "transport/rpc", Never: light, May: []string{generated, connect, protobuf, hclog}},
	{Path: generated, Tree: true, Never: light, May: []string{connect, protobuf}},

	// The pure machine: what it does follows from the log alone. Its own test
	// also looks at what it uses of the packages that it imports.
	{Path: "internal/state", Never: append([]string{hclog, module + "/internal/clock"}, light...), NotStd: []string{
		"context", "crypto/rand", "log", "maps", "math/rand", "net", "os", "reflect", "runtime", "syscall", "unique", "unsafe",
	}},

	{Path: "lease/leasetest", May: []string{"lease"}},
	{Path: "lease", Never: light, May: []string{"internal/clock"}},
	{Path: "internal/clock", Never: light, May: []string{unix}},
}
