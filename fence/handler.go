package fence

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/raftlease/raftlease/lease"
)

// Handler returns a handler that calls next under gate.Do, with the token of the
// request, if the request is made under the lease name. next must return soon
// after the request's context has ended: a request with a larger token waits for
// that.
//
// It answers 428 to a request without a token, 400 to bad headers, 412 to a stale
// token (with HeaderHighest, see Refused) and to the token of another lease, and
// 503 when the marks fail or the request ends while it waits.
func Handler(gate *Gate, name string, next http.Handler) http.Handler {
	return HandlerFunc(gate, func(*http.Request) string { return name }, next)
}

// HandlerFunc is Handler for more than one lease: name returns the lease that
// guards what the request is about. It must be decided by what is asked for,
// never by the request's own HeaderName.
func HandlerFunc(gate *Gate, name func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		under, token, err := FromHeader(r.Header)
		if errors.Is(err, lease.ErrNotFound) {
			http.Error(w, err.Error(), http.StatusPreconditionRequired)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if want := name(r); under != want {
			http.Error(w, "the request is made under lease "+strconv.Quote(under)+", want "+strconv.Quote(want),
				http.StatusPreconditionFailed)
			return
		}
		began := false
		err = gate.Do(r.Context(), under, token, func(ctx context.Context) error {
			began = true
			next.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
		if began || err == nil {
			return
		}
		var stale *StaleError
		if errors.As(err, &stale) {
			w.Header().Set(HeaderHighest, strconv.FormatUint(stale.Highest, 10))
			http.Error(w, err.Error(), http.StatusPreconditionFailed)
			return
		}
		http.Error(w, "fencing token could not be checked", http.StatusServiceUnavailable)
	})
}
