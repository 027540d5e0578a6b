package sqlstore

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// The statements of each dialect, as they are sent. For SQL Server nothing else
// is tested here: read what changes with its documentation at hand.
func TestDialect_StatementsAreTheGoldenOnes(t *testing.T) {
	for _, d := range Dialects() {
		t.Run(d.String(), func(t *testing.T) {
			names, err := Config{Table: "app.leases"}.names(d)
			if err != nil {
				t.Fatal(err)
			}
			got := written(d.statements(names))
			path := filepath.Join("testdata", d.String()+".sql")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the statements are not those of %s; if that is meant, run the tests with -update and read the difference\n%s", path, got)
			}
		})
	}
}

// written returns all statements with their names.
func written(s statements) string {
	var b strings.Builder
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		texts := []string{v.Field(i).String()}
		if v.Field(i).Kind() == reflect.Slice {
			texts = s.schema
		}
		for _, text := range texts {
			fmt.Fprintf(&b, "-- %s\n%s;\n\n", v.Type().Field(i).Name, strings.TrimSuffix(text, ";"))
		}
	}
	return b.String()
}

// Every statement is there, with all names filled in.
func TestDialect_StatementsAreComplete(t *testing.T) {
	for _, d := range Dialects() {
		names, err := Config{}.names(d)
		if err != nil {
			t.Fatal(err)
		}
		v := reflect.ValueOf(d.statements(names))
		for i := range v.NumField() {
			what := fmt.Sprintf("%s: %s", d, v.Type().Field(i).Name)
			text := fmt.Sprint(v.Field(i))
			if len(text) < 10 {
				t.Errorf("%s is missing", what)
			}
			if strings.ContainsAny(text, "{}") {
				t.Errorf("%s has a name that was not filled in:\n%s", what, text)
			}
		}
	}
}

// Case 23 for the dialect that cannot run here: the clock is read in a statement
// of its own after the one that locks.
func TestSQLServer_ReadsTheClockAfterTheLock(t *testing.T) {
	names, err := Config{}.names(SQLServer)
	if err != nil {
		t.Fatal(err)
	}
	s := SQLServer.statements(names)
	for what, text := range map[string]string{"acquire": s.acquire, "renew": s.renew, "put": s.put, "check": s.check} {
		lock, clock := strings.Index(text, "UPDLOCK"), strings.Index(text, "SYSUTCDATETIME")
		if lock < 0 || clock < lock || !strings.Contains(text[lock:clock], ";") {
			t.Errorf("%s does not lock in one statement and read the clock in a later one:\n%s", what, text)
		}
		if strings.Count(text, "SYSUTCDATETIME") != 1 {
			t.Errorf("%s reads the clock more than once:\n%s", what, text)
		}
		if begins, ends := strings.Count(text, "BEGIN TRANSACTION"), strings.Count(text, "COMMIT TRANSACTION"); begins != ends {
			t.Errorf("%s begins %d transactions and ends %d:\n%s", what, begins, ends, text)
		}
	}
}

func TestAfter(t *testing.T) {
	for _, c := range []struct{ prefix, want string }{
		{"", ""}, {"a", "b"}, {"az", "a{"}, {"é", "ê"}, {"\u007f", "\u0080"}, {"\uffff", "\U00010000"},
		{"\ud7ff", "\ue000"}, {"a\U0010ffff", "b"}, {"\U0010ffff", ""}, {"a\U0010ffff\U0010ffff", "b"},
	} {
		if got := after(c.prefix); got != c.want {
			t.Errorf("after %q comes %q, want %q", c.prefix, got, c.want)
		}
		if c.want != "" && c.prefix+"\U0010ffff" >= c.want {
			t.Errorf("%q is not after what begins with %q", c.want, c.prefix)
		}
	}
}

func TestLike(t *testing.T) {
	if got, want := like(`50%_of [a] \`)[0], `50\%\_of \[a] \\%`; got != want {
		t.Errorf("pattern %q, want %q", got, want)
	}
}
