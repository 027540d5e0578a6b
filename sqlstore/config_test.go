package sqlstore

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/raftlease/raftlease/lease"
)

// G8: whatever would not be a plain name is refused, so that nothing can be
// smuggled into a statement with it.
func TestConfig_Validate(t *testing.T) {
	long := strings.Repeat("t", identifierLen)
	for _, ok := range []Config{
		{}, {Table: "order"}, {Table: "app.leases"}, {Table: "_1"}, {Table: long + "." + long}, {Timeout: time.Millisecond},
		{Limits: lease.Limits{MinTTL: time.Millisecond}}, {Limits: lease.Limits{MaxTTL: 365 * 24 * time.Hour}},
	} {
		if err := ok.Validate(); err != nil {
			t.Errorf("%+v: %v", ok, err)
		}
	}
	for _, bad := range []struct {
		Config
		fields []string
	}{
		{Config{Table: long + "t"}, []string{"Table"}},
		{Config{Table: "."}, []string{"Table"}},
		{Config{Table: "a."}, []string{"Table"}},
		{Config{Table: ".a"}, []string{"Table"}},
		{Config{Table: "a.b.c"}, []string{"Table"}},
		{Config{Table: "1a"}, []string{"Table"}},
		{Config{Table: "a b"}, []string{"Table"}},
		{Config{Table: `a"; DROP TABLE b; --`}, []string{"Table"}},
		{Config{Table: "a]"}, []string{"Table"}},
		{Config{Table: "a'"}, []string{"Table"}},
		{Config{Table: "a{leases}"}, []string{"Table"}},
		{Config{Table: "größe"}, []string{"Table"}},
		{Config{Timeout: -1}, []string{"Timeout"}},
		{Config{Timeout: time.Microsecond}, []string{"Timeout"}},
		{Config{Limits: lease.Limits{MinTTL: time.Microsecond}}, []string{"Limits"}},
		{Config{Limits: lease.Limits{MinTTL: time.Hour, MaxTTL: time.Minute}}, []string{"Limits"}},
		{Config{Limits: lease.Limits{MaxTTL: 366 * 24 * time.Hour}}, []string{"Limits"}},
		{Config{Table: "a b", Timeout: -1, Limits: lease.Limits{MinTTL: -1}}, []string{"Table", "Limits", "Timeout"}},
	} {
		err := bad.Validate()
		var invalid *lease.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%+v: error %v, want a *lease.InvalidError", bad.Config, err)
			continue
		}
		var fields []string
		for _, f := range invalid.Faults {
			fields = append(fields, f.Field)
		}
		if !slices.Equal(fields, bad.fields) {
			t.Errorf("%+v: faults in %q, want %q", bad.Config, fields, bad.fields)
		}
		if _, err := bad.Open(new(sql.DB), Postgres); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("open with %+v: error %v, want lease.ErrInvalid", bad.Config, err)
		}
		if _, err := Postgres.Schema(bad.Table); bad.fields[0] == "Table" && !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("schema of %q: error %v, want lease.ErrInvalid", bad.Table, err)
		}
	}
}

func TestOpen_PanicsOnProgrammerErrors(t *testing.T) {
	for what, call := range map[string]func(){
		"no database": func() { _, _ = Open(nil, SQLite) },
		"no dialect":  func() { _, _ = Open(new(sql.DB), Dialect{}) },
	} {
		t.Run(what, func(t *testing.T) {
			defer func() {
				if got, ok := recover().(string); !ok || !strings.HasPrefix(got, "sqlstore: ") {
					t.Errorf("panic with %q, want one that names the package", got)
				}
			}()
			call()
		})
	}
}

func TestDialect_Schema(t *testing.T) {
	for _, d := range Dialects() {
		s, err := Open(new(sql.DB), d)
		if err != nil {
			t.Fatal(err)
		}
		text, err := d.Schema("")
		if err != nil {
			t.Fatal(err)
		}
		if text != s.Schema() {
			t.Errorf("%s: the schema without a store differs from that of a store", d)
		}
		for _, name := range []string{DefaultTable, DefaultTable + "_tokens"} {
			if !strings.Contains(text, "CREATE TABLE") || !strings.Contains(text, d.quote(name)) {
				t.Errorf("%s: the schema does not create %s:\n%s", d, name, text)
			}
		}
	}
}
