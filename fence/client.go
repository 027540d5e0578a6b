package fence

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/raftlease/raftlease/lease"
)

// escape makes any lease name fit for a header.
func escape(name string) string { return url.PathEscape(name) }

func unescape(s string) (string, bool) {
	name, err := url.PathUnescape(s)
	return name, err == nil
}

// Transport is an http.RoundTripper that checks a grant right before each
// request and sends its name and token along. Give it the grant that lease.Run
// gives to the job. Safe for concurrent use.
type Transport struct {
	Grant lease.Grant
	Base  http.RoundTripper // Defaults to http.DefaultTransport.
}

// RoundTrip implements http.RoundTripper. When the grant is over it returns the
// error of its Check, and nothing is sent.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.Grant.Check(); err != nil {
		if r.Body != nil {
			r.Body.Close() // as every RoundTripper has to
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	SetHeader(r.Header, t.Grant)
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(r)
}

// Refused returns a *StaleError if r is the answer of a Handler that refused the
// token of its request, and nil otherwise. It leaves the body alone.
func Refused(r *http.Response) error {
	highest, err := strconv.ParseUint(r.Header.Get(HeaderHighest), 10, 64)
	if r.StatusCode != http.StatusPreconditionFailed || err != nil || r.Request == nil {
		return nil
	}
	name, token, err := FromHeader(r.Request.Header)
	if err != nil {
		return fmt.Errorf("%w: by the answer to a request without a token", ErrStale)
	}
	return &StaleError{Name: name, Token: token, Highest: highest}
}
