package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/raftlease/raftlease"
)

const patience = 60 * time.Second

// asRaftlease makes this test binary the command itself.
const asRaftlease = "TEST_AS_RAFTLEASE"

func TestMain(m *testing.M) {
	if os.Getenv(asRaftlease) != "" {
		main() // does not return
	}
	os.Exit(m.Run())
}

// result is what a command line did.
type result struct {
	code     int
	out, err string
}

// command carries out a command line in this process.
func command(t testing.TB, env map[string]string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, errs strings.Builder
	code := run(ctx, args, streams{in: strings.NewReader(""), out: &out, err: &errs}, func(k string) (string, bool) {
		v, ok := env[k]
		return v, ok
	})
	return result{code, out.String(), errs.String()}
}

// oneNode opens a cluster of one and returns its address.
func oneNode(t testing.TB) string {
	t.Helper()
	n, err := raftlease.Open(raftlease.Config{ID: "a", Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return n.Addr()
}

func freeAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// want checks the exit code and that stderr says something.
func (r result) want(t testing.TB, code int, stderr ...string) result {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d; stderr: %s", r.code, code, r.err)
	}
	for _, s := range stderr {
		if !strings.Contains(r.err, s) {
			t.Errorf("stderr %q\nlacks %q", r.err, s)
		}
	}
	return r
}

// json parses the one document on stdout.
func (r result) json(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(r.out), &m); err != nil {
		t.Fatalf("stdout is no JSON document: %v\n%s", err, r.out)
	}
	return m
}

// The verbs, with the exit codes that scripts rely on.
func TestCommand_Verbs(t *testing.T) {
	env := map[string]string{"RAFTLEASE_ADDR": oneNode(t)}
	got := command(t, env, "acquire", "job", "--owner", "x", "--ttl", "1h", "-o", "json").want(t, exitDone).json(t)
	if got["token"] != "1" && got["token"] != 1.0 {
		t.Errorf("acquire: %v, want token 1", got)
	}
	command(t, env, "acquire", "job", "--owner", "y", "--ttl", "10s").want(t, exitHeld, `held by "x"`, "token 1")
	command(t, env, "renew", "job", "--owner", "x", "--token", "1", "--ttl", "1h").want(t, exitDone)
	command(t, env, "renew", "job", "--owner", "x", "--token", "2", "--ttl", "1h").want(t, exitLost, "lost")
	command(t, env, "put", "job", "--owner", "x", "--token", "1", "--data", "row 7").want(t, exitDone)
	if r := command(t, env, "get", "job").want(t, exitDone); !strings.Contains(r.out, "x") || !strings.Contains(r.out, "row 7") {
		t.Errorf("get: %s", r.out)
	}
	if r := command(t, env, "ls").want(t, exitDone); !strings.Contains(r.out, "job") {
		t.Errorf("ls: %s", r.out)
	}
	command(t, env, "ls", "-o", "json").want(t, exitDone).json(t)
	command(t, env, "release", "job", "--owner", "x", "--token", "1").want(t, exitDone)
	command(t, env, "acquire", "job", "--owner", "y", "--ttl", "10s").want(t, exitDone)
	command(t, env, "cluster", "break", "job").want(t, exitUsage, "--yes")
	command(t, env, "cluster", "break", "job", "--yes").want(t, exitDone)
	if got := command(t, env, "cluster", "status", "-o", "json").want(t, exitDone).out; !strings.Contains(got, `"leader"`) {
		t.Errorf("cluster status: %s", got)
	}
}

func TestCommand_Refuses(t *testing.T) {
	command(t, nil, "acquire").want(t, exitUsage)
	command(t, nil, "nonsense").want(t, exitUsage, "nonsense")
	command(t, nil, "ls", "--no-such-flag").want(t, exitUsage, "no-such-flag")
	command(t, nil, "ls", "-o", "yaml").want(t, exitUsage, "json")
	command(t, map[string]string{"RAFTLEASE_TIMEOUT": "soon"}, "ls").want(t, exitUsage, "RAFTLEASE_TIMEOUT")
	command(t, nil, "acquire", "a\nb", "--owner", "x").want(t, exitUsage, "NAME")
	command(t, nil, "acquire", "a", "--owner", "x", "--ttl", "1ns").want(t, exitUsage, "ttl")
	nobody := freeAddr(t)
	command(t, nil, "--addr", nobody, "--timeout", "300ms", "ls").want(t, exitUnavailable, nobody)
}

func TestCommand_Version(t *testing.T) {
	if r := command(t, nil, "version").want(t, exitDone); !strings.Contains(r.out, raftlease.Version) {
		t.Errorf("version: %s", r.out)
	}
}

// start runs the command as a process of its own.
func start(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asRaftlease+"=1")
	return cmd
}

// A node as a process: it serves, and ends in good order on SIGINT.
func TestCommand_Node(t *testing.T) {
	addr := freeAddr(t)
	cmd := start(t, "node", "--id", "a", "--dir", filepath.Join(t.TempDir(), "a"), "--listen", addr)
	var logs strings.Builder
	cmd.Stdout, cmd.Stderr = &logs, &logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	command(t, nil, "--addr", addr, "--timeout", "30s", "acquire", "job", "--owner", "x", "--ttl", "10s").want(t, exitDone)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("node after SIGINT: %v\n%s", err, logs.String())
	}
}
