package fence

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/raftlease/raftlease/lease"
)

// The headers that carry a grant in a request, and the mark in a refusal.
const (
	HeaderName    = "Raftlease-Name"
	HeaderToken   = "Raftlease-Token"
	HeaderHighest = "Raftlease-Highest"
)

// SetHeader puts name and token of g into h, in place of what is there.
func SetHeader(h http.Header, g lease.Grant) {
	h.Set(HeaderName, escape(g.Name))
	h.Set(HeaderToken, strconv.FormatUint(g.Token, 10))
}

// FromHeader returns the lease name and the token in h. Without both the error
// is lease.ErrNotFound, with bad ones lease.ErrInvalid.
func FromHeader(h http.Header) (name string, token uint64, err error) {
	names, tokens := h.Values(HeaderName), h.Values(HeaderToken)
	if len(names) == 0 || len(tokens) == 0 {
		return "", 0, fmt.Errorf("headers %s and %s: %w", HeaderName, HeaderToken, lease.ErrNotFound)
	}
	var f lease.Faults
	name, ok := unescape(names[0])
	if !ok || len(names) > 1 {
		f.Add(HeaderName, names[0], "one lease name, percent-encoded")
	} else {
		f.Name(name)
	}
	token, bad := strconv.ParseUint(tokens[0], 10, 64)
	if bad != nil || len(tokens) > 1 {
		f.Add(HeaderToken, tokens[0], "one decimal number")
	} else {
		f.Token(token)
	}
	if err := f.Err(); err != nil {
		return "", 0, fmt.Errorf("headers: %w", err)
	}
	return name, token, nil
}
