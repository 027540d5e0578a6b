package sqltest

import (
	"testing"
	"time"

	"github.com/raftlease/raftlease/sqlstore"
)

// Names of tables are quoted: reserved words and upper case work, and a schema
// may stand before them.
func TestConfig_TableNames(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		schema := map[string]string{"sqlite": "main", "postgres": "public", "sqlserver": "dbo"}[d.dialect.String()]
		for _, name := range []string{"order", "Select_" + uniqueTable()[7:], schema + "." + uniqueTable()} {
			t.Run(name, func(t *testing.T) {
				d.table = name
				s := d.store(t)
				g := acquire(t, s, "job", "a", time.Minute)
				if _, err := s.Renew(bg, g, time.Minute); err != nil {
					t.Error(err)
				}
				if err := s.EnsureSchema(bg); err != nil {
					t.Errorf("ensure the schema again: %v", err)
				}
				larger(t, acquire(t, s, "other", "a", time.Minute), g)
			})
		}
	})
}

// EnsureSchema changes nothing that is there.
func TestStore_EnsureSchemaKeepsWhatIsThere(t *testing.T) {
	onEach(t, func(t *testing.T, d database) {
		s := d.store(t)
		g := acquire(t, s, "job", "a", time.Minute)
		for range 2 {
			if err := s.EnsureSchema(bg); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Renew(bg, g, time.Minute); err != nil {
			t.Error(err)
		}
		d.do(t, "UPDATE "+d.tokens()+" SET token = 5000")
		if err := s.EnsureSchema(bg); err != nil {
			t.Fatal(err)
		}
		if next := acquire(t, s, "other", "a", time.Minute); next.Token != 5001 {
			t.Errorf("token %d, want 5001", next.Token)
		}
	})
}

// A table that the store may only use, not create.
func TestStore_EnsureSchemaNeedsNoRightWhereNothingIsMissing(t *testing.T) {
	d := onPostgres(t)
	d.store(t)
	role := d.table // roles belong to the whole server
	d.do(t, "CREATE ROLE "+role+" LOGIN")
	d.do(t, "GRANT SELECT, INSERT, UPDATE ON "+d.table+", "+d.tokens()+" TO "+role)
	d.dsn += " user=" + role
	s := d.on(t, d.again(t), sqlstore.Config{})
	g := acquire(t, s, "job", "a", time.Minute)
	release(t, s, g)
	d.do(t, "DROP OWNED BY "+role)
	d.do(t, "DROP ROLE "+role)
}

// PostgreSQL updates a lease in place, without a new entry in any index.
func TestStore_RenewalsAreHOT(t *testing.T) {
	d := onPostgres(t)
	s := d.store(t)
	g := acquire(t, s, "job", "a", time.Minute)
	const renewals = 500
	for range renewals {
		if _, err := s.Renew(bg, g, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	stats := func(column string) int64 {
		return d.count(t, "SELECT "+column+" FROM pg_stat_user_tables WHERE relname = '"+d.table+"'")
	}
	// A session reports what it did once it has been idle for a while.
	poll(t, "the statistics of the table", func() bool { return stats("n_tup_upd") >= renewals })
	if all, hot := stats("n_tup_upd"), stats("n_tup_hot_upd"); hot < all*9/10 {
		t.Errorf("%d of %d updates were HOT, want nearly all", hot, all)
	}
}
