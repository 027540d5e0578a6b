package sqltest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// server is a private PostgreSQL in a temporary directory, reachable over a
// Unix socket in it and nothing else.
type server struct {
	dir string
	cmd *exec.Cmd
	log bytes.Buffer
}

var (
	errNoPostgres = errors.New("PostgreSQL is not installed (Debian: apt-get install postgresql)")

	// thePostgres is started for the first test that asks and stopped by
	// TestMain.
	thePostgres = sync.OnceValues(startPostgres)
	postgresRan *server // set by startPostgres
)

func TestMain(m *testing.M) {
	if job := os.Getenv(contenderEnv); job != "" {
		if err := contend(job); err != nil {
			fmt.Fprintln(os.Stderr, "contender:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if postgresRan != nil {
		if err := postgresRan.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// postgresServer returns the private server. Where it is not installed the test
// is skipped, but not in CI.
func postgresServer(t testing.TB) *server {
	t.Helper()
	s, err := thePostgres()
	if errors.Is(err, errNoPostgres) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *server) dsn() string { return "host=" + s.dir + " user=raftlease dbname=postgres" }

func startPostgres() (*server, error) {
	initdb, postgres := findPostgres("initdb"), findPostgres("postgres")
	if initdb == "" || postgres == "" {
		return nil, errNoPostgres
	}
	// Not t.TempDir: another user could not enter it, and a socket's path has to
	// be short.
	dir, err := os.MkdirTemp("", "raftlease-pg")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	if err := s.start(initdb, postgres); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	postgresRan = s
	return s, nil
}

// findPostgres returns the path of one of its programs, or "". Debian keeps
// them out of PATH.
func findPostgres(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if len(paths) == 0 {
		return ""
	}
	return slices.Max(paths)
}

func (s *server) start(initdb, postgres string) error {
	attr, err := s.unprivileged()
	if err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	cmd := exec.Command(initdb, "-D", data, "-U", "raftlease", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	cmd.Dir, cmd.SysProcAttr = s.dir, attr
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	s.cmd = exec.Command(postgres, "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=200",
		"-c", "fsync=off", "-c", "deadlock_timeout=100ms")
	s.cmd.Dir, s.cmd.SysProcAttr = s.dir, attr
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	return s.ready()
}

// unprivileged gives the directory to a user that the server agrees to run as,
// when this is root.
func (s *server) unprivileged() (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return childOf(-1, -1), nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	return childOf(uid, gid), os.Chown(s.dir, uid, gid)
}

// ready waits until the server answers.
func (s *server) ready() error {
	db, err := sql.Open("pgx", s.dsn())
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w", err)
		}
	}
}

// stop ends the server, connections and all, and removes what it had.
func (s *server) stop() error {
	if s.cmd != nil {
		err := errors.Join(s.cmd.Process.Signal(os.Interrupt), s.cmd.Wait())
		if err != nil {
			return fmt.Errorf("%w\n%s", err, s.log.String())
		}
	}
	return os.RemoveAll(s.dir)
}
