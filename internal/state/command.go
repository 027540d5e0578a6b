package state

import "time"

// Kind names a command. Its number is part of the log format and never changes
// its meaning.
type Kind uint8

// The commands, with the fields that each needs. What each does is said at the
// method of Machine that has its name.
const (
	KindAcquire Kind = 1 + iota // Name, Owner, TTL, Session
	KindRenew                   // Name, Owner, Token, TTL: the recorded ttl grows to TTL
	KindShorten                 // Name, Token, TTL: the recorded ttl falls to TTL
	KindRelease                 // Name, Owner, Token
	KindExpire                  // Ends
	KindPut                     // Name, Token, Data
	KindBreak                   // Name
	KindReclaim                 // Session: every earlier incarnation of the same node and disk
	KindEpoch                   // nothing; its result is the term of the log entry
	kindEnd
)

// Session names one run of one node's process on one disk. Only grants that a
// node takes for its own embedded service have one; the zero Session is none.
type Session struct {
	Node        string
	Disk        string
	Incarnation uint64 // rises at every start on the same disk
}

// End names one grant that a granter wants to end: it takes effect only while
// the grant's revision is still the same.
type End struct {
	Name     string
	Token    uint64
	Revision uint64 // log index of the grant's last grant or recorded refresh
}

// Command is one change of the state. Only the fields named at its Kind are
// encoded; the others are ignored.
type Command struct {
	Kind    Kind
	Name    string
	Owner   string
	Token   uint64
	TTL     time.Duration // whole milliseconds
	Data    []byte
	Session Session
	Ends    []End
}

// Entry is what one log entry carries.
type Entry struct {
	// Term is the raft term in which the commands were decided. In an entry of
	// any other term all of them but Epoch are Stale: what a leader decided that
	// was deposed before it could append it never happens.
	Term     uint64
	Commands []Command
}

// Code is the outcome of a command.
type Code uint8

// Outcomes. Every command has one; none is an error of the machine.
const (
	OK       Code = 1 + iota // done; Lease is the state after it (for an ending: the grant that ended)
	Held                     // acquire refused; Lease is the live grant
	NotLive                  // the named grant is not live: no effect; Lease is the live grant, if any
	Stale                    // decided in another term: no effect
	Rejected                 // the command's fields break the limits, or the tokens are used up: no effect; Why says which
)

// Result is the outcome of one command, by position in its entry.
type Result struct {
	Code  Code
	Lease Lease   // see Code; zero when there is none
	New   bool    // acquire: a new grant (a new token), not an extension
	Term  uint64  // epoch: term of the log entry
	Ended []Lease // expire, release, break, reclaim: the grants that ended, in byte order of name
	Why   string  // Rejected: the field and what is allowed
}

// Lease is the record of one name.
type Lease struct {
	Name      string
	Owner     string // "" when free (the record then only keeps Data)
	Token     uint64 // of the live grant; 0 when free
	TTL       time.Duration
	Session   Session // of the one process that has the grant; none when it was given to several
	Revision  uint64  // log index of the last grant or recorded refresh; when free, of the end
	Data      []byte  // outlives the grant
	DataToken uint64  // the token that wrote Data
}
