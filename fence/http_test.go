package fence

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// serve runs a resource that is guarded by the lease "x/ü y".
func serve(t testing.TB, gate *Gate, served *int) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(Handler(gate, "x/ü y", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*served++
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "row" {
			t.Errorf("body %q, %v", body, err)
		}
	})))
	t.Cleanup(s.Close)
	return s
}

func grant(name string, token uint64) lease.Grant {
	return lease.NewAnchor().Grant(name, "a", token, time.Hour, 0)
}

func post(t testing.TB, url string, g lease.Grant) (*http.Response, error) {
	t.Helper()
	c := http.Client{Transport: &Transport{Grant: g}}
	r, err := c.Post(url, "text/plain", strings.NewReader("row"))
	if err == nil {
		r.Body.Close()
	}
	return r, err
}

// G7 over HTTP: the token of the client is what the handler compares.
func TestHandler_RefusesAStaleToken(t *testing.T) {
	var served int
	s := serve(t, NewGate(NewMemory()), &served)
	for i, c := range []struct {
		grant  lease.Grant
		status int
		served int
	}{
		{grant("x/ü y", 7), http.StatusOK, 1},
		{grant("x/ü y", 9), http.StatusOK, 2},
		{grant("x/ü y", 7), http.StatusPreconditionFailed, 2},
		{grant("x/ü y", 9), http.StatusOK, 3},
		{grant("another", 99), http.StatusPreconditionFailed, 3},
		{grant("x/ü y", 9), http.StatusOK, 4}, // which 99 did not make stale
	} {
		r, err := post(t, s.URL, c.grant)
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != c.status || served != c.served {
			t.Errorf("%d: status %d, %d served, want %d, %d", i, r.StatusCode, served, c.status, c.served)
		}
		err = Refused(r)
		if i == 2 {
			isStale(t, err, 7, 9)
		} else if err != nil {
			t.Errorf("%d: refused: %v", i, err)
		}
	}
}

func TestHandler_BadHeaders(t *testing.T) {
	var served int
	s := serve(t, NewGate(NewMemory()), &served)
	for _, c := range []struct {
		name, token []string
		status      int
	}{
		{nil, nil, 428}, {[]string{"x"}, nil, 428}, {nil, []string{"7"}, 428},
		{[]string{"x"}, []string{"-7"}, 400}, {[]string{"x"}, []string{"0"}, 400}, {[]string{"x"}, []string{"9007199254740992"}, 400},
		{[]string{"x"}, []string{"18446744073709551616"}, 400}, {[]string{"x"}, []string{"7", "8"}, 400},
		{[]string{"x", "y"}, []string{"7"}, 400}, {[]string{"%zz"}, []string{"7"}, 400}, {[]string{""}, []string{"7"}, 400},
		{[]string{"x%0a"}, []string{"7"}, 400},
	} {
		r, err := http.NewRequest(http.MethodPost, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header[HeaderName], r.Header[HeaderToken] = c.name, c.token
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != c.status {
			t.Errorf("%q, %q: status %d, want %d", c.name, c.token, a.StatusCode, c.status)
		}
		if err := Refused(a); err != nil {
			t.Errorf("%q, %q: %v, want that no token was refused", c.name, c.token, err)
		}
	}
	if served != 0 {
		t.Errorf("%d requests served", served)
	}
}

func TestHandler_MarksFail(t *testing.T) {
	var served int
	s := serve(t, NewGate(brokenMarks{errors.New("disk full at /secret")}), &served)
	r, err := http.NewRequest(http.MethodPost, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	SetHeader(r.Header, grant("x/ü y", 7))
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if a.StatusCode != http.StatusServiceUnavailable || served != 0 || err != nil || strings.Contains(string(body), "secret") {
		t.Errorf("status %d, %d served, %q, %v", a.StatusCode, served, body, err)
	}
}

// A larger token ends the request that is being served.
func TestHandler_EndsTheContextOfASmallerToken(t *testing.T) {
	inside := make(chan struct{})
	cause := make(chan error, 1)
	h := Handler(NewGate(NewMemory()), "x", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(HeaderToken) == "7" {
			close(inside)
			<-r.Context().Done()
			cause <- context.Cause(r.Context())
		}
	}))
	serve := func(token uint64) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		SetHeader(r.Header, grant("x", token))
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	done := make(chan struct{})
	go func() { defer close(done); serve(7) }()
	<-inside
	serve(8)
	isStale(t, <-cause, 7, 8)
	<-done
}

type closeNoter struct {
	io.Reader
	closed bool
}

func (c *closeNoter) Close() error { c.closed = true; return nil }

// G4 at the client: a request under a lost grant is not sent.
func TestTransport_ChecksTheGrant(t *testing.T) {
	var served int
	s := serve(t, NewGate(NewMemory()), &served)
	lost := lease.NewAnchor().Grant("x/ü y", "a", 7, 0, 0)
	_, err := post(t, s.URL, lost)
	if !errors.Is(err, lease.ErrLost) || served != 0 {
		t.Errorf("%v, %d served, want that the lease is lost", err, served)
	}
	body := &closeNoter{Reader: strings.NewReader("row")}
	r, err := http.NewRequest(http.MethodPost, s.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	tr := &Transport{Grant: lost}
	if _, err := tr.RoundTrip(r); err == nil || !body.closed {
		t.Errorf("%v, body closed: %v", err, body.closed)
	}
	tr.Grant = grant("x/ü y", 7)
	a, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if len(r.Header) != 0 {
		t.Errorf("the caller's request was changed: %v", r.Header)
	}
}

func FuzzFromHeader(f *testing.F) {
	f.Add("x", "7")
	f.Add("a%2Fb", "9007199254740991")
	f.Add("%", "-1")
	f.Fuzz(func(t *testing.T, name, token string) {
		h := http.Header{HeaderName: {name}, HeaderToken: {token}}
		n, tok, err := FromHeader(h)
		if err != nil {
			if !errors.Is(err, lease.ErrInvalid) {
				t.Errorf("%q, %q: %v", name, token, err)
			}
			return
		}
		again := http.Header{}
		SetHeader(again, lease.Grant{Name: n, Token: tok})
		if n2, tok2, err := FromHeader(again); n2 != n || tok2 != tok || err != nil {
			t.Errorf("%q with %d came back as %q with %d, %v", n, tok, n2, tok2, err)
		}
	})
}
