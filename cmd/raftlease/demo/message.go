package demo

import "time"

// order is what the demo tells a child: a JSON line on its stdin. When stdin
// ends, the child does.
type order struct {
	Do string `json:"do"`

	Part *Part `json:"part,omitempty"` // orderStart

	Node string `json:"node,omitempty"` // orderTransfer: who shall lead

	Token uint64 `json:"token,omitempty"` // orderLate

	Port int `json:"port,omitempty"` // orderWhose: of the dialler
	Peer int `json:"peer,omitempty"` // orderWhose: of the link dialled

	Seq  uint64 `json:"seq,omitempty"`  // orderAnswer: to which write
	Good bool   `json:"good,omitempty"` // orderAnswer: it was accepted
}

// Orders.
const (
	orderStart    = "start"    // begin with Part; the first order of all
	orderTransfer = "transfer" // hand leadership to Node
	orderLate     = "late"     // write under Token without a look at the grant
	orderWhose    = "whose"    // say so if this connection is yours
	orderAnswer   = "answer"   // what came of a write
)

// Part is what one child does.
type Part struct {
	ID     string            `json:"id"`
	Dir    string            `json:"dir"`
	Listen string            `json:"listen"`
	Peers  map[string]string `json:"peers"` // the addresses of the links
	Lease  string            `json:"lease"`
	TTL    time.Duration     `json:"ttl"`
	Tick   time.Duration     `json:"tick"`
}

// report is what a child says: a JSON line on its stdout. Times are readings of
// now.
type report struct {
	Kind string        `json:"kind"`
	At   time.Duration `json:"at,omitempty"`
	Why  string        `json:"why,omitempty"`

	State     string `json:"state,omitempty"` // reportState
	Leader    string `json:"leader,omitempty"`
	Term      uint64 `json:"term,omitempty"`
	NextToken uint64 `json:"nextToken,omitempty"`

	Token uint64        `json:"token,omitempty"` // of the worker's grant
	Until time.Duration `json:"until,omitempty"` // how long the holder may act
	Left  time.Duration `json:"left,omitempty"`  // reportJeopardy

	Seq  uint64 `json:"seq,omitempty"`  // reportWrite
	Late bool   `json:"late,omitempty"` // reportWrite: without a look at the grant

	Port int `json:"port,omitempty"` // reportMine
	Peer int `json:"peer,omitempty"`
}

// Reports. The last two are made by the demo itself.
const (
	reportState    = "state"    // of the node, when it changed
	reportHeld     = "held"     // the worker was granted the lease
	reportRenewed  = "renewed"  // its deadline moved
	reportJeopardy = "jeopardy" // a renewal did not work
	reportEnded    = "ended"    // the worker stopped
	reportWrite    = "write"    // the worker writes to the resource
	reportMine     = "mine"     // the answer to orderWhose
	reportRefused  = "refused"  // an order could not be carried out
	reportFailed   = "failed"   // the node did not open, or stopped by itself

	reportGarbled = "garbled" // something else on stdout
	reportExited  = "exited"
)
