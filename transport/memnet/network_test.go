package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pair returns both ends of a connection from host a to host b.
func pair(t testing.TB, n *Network) (here, there net.Conn) {
	t.Helper()
	ln, err := n.Host("b").Listen("b:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	here, err = n.Host("a").Dial(t.Context(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	there, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

func write(t testing.TB, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatalf("Write: %v", err)
	}
}

func read(t testing.TB, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatalf("Read: %v, want %q", err, want)
	}
	if string(b) != want {
		t.Fatalf("Read got %q, want %q", b, want)
	}
}

func TestNetwork_DelaysEveryMessageInOneDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		here, there := pair(t, n)
		delays := []time.Duration{3 * time.Second, time.Second}
		n.SetLink("a", "b", Link{Delay: func() (d time.Duration) {
			if len(delays) > 0 {
				d, delays = delays[0], delays[1:]
			}
			return d
		}})
		start := time.Now()
		write(t, here, "slow ")
		write(t, here, "quick") // does not overtake
		read(t, there, "slow quick")
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("arrived after %v, want 3s", got)
		}
		start = time.Now()
		write(t, there, "back")
		read(t, here, "back")
		if got := time.Since(start); got != 0 {
			t.Errorf("the way back took %v, want 0s", got)
		}
	})
}

func TestNetwork_CutKeepsBackUntilItIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		here, there := pair(t, n)
		n.SetLink("a", "b", Link{Cut: true})
		write(t, here, "kept")
		there.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := there.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("Read over a cut link: %v, want deadline exceeded", err)
		}
		write(t, there, "back") // only one way is cut
		read(t, here, "back")

		there.SetReadDeadline(time.Time{})
		mended := time.AfterFunc(time.Hour, func() { n.SetLink("a", "b", Link{}) })
		defer mended.Stop()
		read(t, there, "kept")
	})
}

func TestNetwork_CutKeepsBackTheEndOfAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		here, there := pair(t, n)
		n.SetLink("a", "b", Link{Cut: true})
		here.Close()
		write(t, there, strings.Repeat("x", window)) // it knows nothing yet
		wrote := make(chan error, 1)
		go func() {
			_, err := io.WriteString(there, "more")
			wrote <- err
		}()
		synctest.Wait()
		select {
		case err := <-wrote:
			t.Fatalf("Write into a full window returned %v, want it to wait", err)
		default:
		}
		n.SetLink("a", "b", Link{})
		if err := <-wrote; !errors.Is(err, syscall.EPIPE) {
			t.Errorf("Write after the end arrived: %v, want EPIPE", err)
		}
		if _, err := there.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("Read after the end arrived: %v, want EOF", err)
		}
	})
}

func TestNetwork_LostMessageResetsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		here, there := pair(t, n)
		n.SetLink("a", "b", Link{Lose: func() bool { return true }})
		write(t, here, "lost") // the writer does not know
		for _, c := range []net.Conn{here, there} {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("Read: %v, want a reset", err)
			}
			if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("Write: %v, want a reset", err)
			}
		}
	})
}

func TestNetwork_Dial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		a, b := n.Host("a"), n.Host("b")
		if _, err := a.Dial(t.Context(), "b:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("Dial without a listener: %v, want refused", err)
		}
		ln, err := b.Listen("b:1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Listen("b:1"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("Listen twice: %v, want address in use", err)
		}
		if _, err := a.Listen("b:2"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("Listen on another host: %v, want address not available", err)
		}
		for _, w := range []way{{"a", "b"}, {"b", "a"}} {
			n.SetLink(w.from, w.to, Link{Cut: true})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := a.Dial(ctx, "b:1"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Dial with %v cut: %v, want deadline exceeded", w, err)
			}
			cancel()
			n.SetLink(w.from, w.to, Link{})
		}
		c, err := a.Dial(t.Context(), "b:1")
		if err != nil {
			t.Fatal(err)
		}
		n.Crash("b")
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Read after a crash: %v, want a reset", err)
		}
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept after a crash: %v, want closed", err)
		}
		if len(n.pipes) != 0 {
			t.Errorf("%d pipes are left, want 0", len(n.pipes))
		}
	})
}

func TestNetwork_CloseDeliversWhatWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		here, there := pair(t, n)
		write(t, here, "last words")
		here.Close()
		if got, err := io.ReadAll(there); err != nil || string(got) != "last words" {
			t.Errorf("ReadAll: %q, %v", got, err)
		}
		if _, err := here.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read of a closed connection: %v, want closed", err)
		}
		there.Close()
		if len(n.pipes) != 0 {
			t.Errorf("%d pipes are left, want 0", len(n.pipes))
		}
	})
}
