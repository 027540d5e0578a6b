package sqlstore

import (
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/raftlease/raftlease/internal/clock"
	"github.com/raftlease/raftlease/lease"
)

// Defaults and bounds of a Config.
const (
	DefaultTable   = "raftlease"
	DefaultTimeout = 10 * time.Second

	minLimit = time.Millisecond
	maxLimit = 365 * 24 * time.Hour
)

// Config says how a Store works. The zero value is useful.
type Config struct {
	// Table is the name of the table, "name" or "schema.name". Defaults to
	// DefaultTable. The last token is kept in a second table, whose name has
	// "_tokens" appended. Both are quoted, so their case counts on PostgreSQL.
	Table string

	// Limits bound the ttl. The zero value means 1 s to 24 h.
	Limits lease.Limits

	// Timeout bounds each statement, with the time that it waits for a row that
	// somebody else has locked. Defaults to DefaultTimeout. The caller's context
	// bounds it too.
	Timeout time.Duration

	// Holder is the clock that grants count their deadline on. Defaults to the
	// machine's holder clock.
	Holder clock.Holder
}

// Validate reports everything that is wrong with c at once, as a
// *lease.InvalidError with the names of the fields.
func (c Config) Validate() error {
	c = c.withDefaults()
	var f lease.Faults
	checkTable(&f, c.Table)
	if l := c.Limits; l.MinTTL < minLimit || l.MinTTL > l.MaxTTL || l.MaxTTL > maxLimit {
		f.Add("Limits", fmt.Sprintf("%v to %v", l.MinTTL, l.MaxTTL),
			fmt.Sprintf("within %v to %v, the smaller first", minLimit, maxLimit))
	}
	if c.Timeout < time.Millisecond {
		f.Add("Timeout", c.Timeout, "at least 1ms, or 0 for the default")
	}
	return f.Err()
}

func (c Config) withDefaults() Config {
	if c.Table == "" {
		c.Table = DefaultTable
	}
	c.Limits = c.Limits.WithDefaults()
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Holder == nil {
		c.Holder = clock.System()
	}
	return c
}

// Open returns a Store that works as c says, or a *lease.InvalidError. It does
// not ask the database for anything; see Store.EnsureSchema.
func (c Config) Open(db *sql.DB, d Dialect) (*Store, error) {
	t, err := c.names(d)
	if err != nil {
		return nil, err
	}
	if db == nil {
		panic("sqlstore: Open: db is nil")
	}
	c = c.withDefaults()
	return &Store{db: db, dialect: d, text: d.statements(t), config: c}, nil
}

// names returns the quoted names of c's tables.
func (c Config) names(d Dialect) (table, error) {
	if d.none() {
		panic("sqlstore: the Dialect is the zero value; give Postgres, SQLServer or SQLite")
	}
	c = c.withDefaults()
	if err := c.Validate(); err != nil {
		return table{}, err
	}
	schema, name, ok := strings.Cut(c.Table, ".")
	if ok {
		schema = d.quote(schema) + "."
	} else {
		schema, name = "", schema
	}
	leases, tokens := d.quote(name), d.quote(name+"_tokens")
	return table{
		leases: schema + leases, tokens: schema + tokens, trigger: schema + d.quote(name+"_token_kept"),
		bareLeases: leases, bareTokens: tokens,
	}, nil
}
