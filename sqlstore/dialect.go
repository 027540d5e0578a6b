package sqlstore

import (
	"strings"

	"github.com/raftlease/raftlease/lease"
)

// Dialect is what differs between databases: the text of the statements and the
// meaning of a driver's errors. It is one of Postgres, SQLServer and SQLite;
// the zero value is none.
type Dialect struct {
	name       string
	quote      func(identifier string) string
	statements func(t table) statements
	judge      func(err error) verdict
	// prefix returns the arguments of statements.list.
	prefix func(prefix string) []any
}

// String returns the name of the database.
func (d Dialect) String() string { return d.name }

// Schema returns the text that creates what a store needs, for people who run
// it themselves. table is as in Config.Table. It can be run again and again.
func (d Dialect) Schema(table string) (string, error) {
	t, err := Config{Table: table}.names(d)
	if err != nil {
		return "", err
	}
	return schemaText(d.statements(t)), nil
}

// table is the quoted names of what belongs to one store.
type table struct {
	leases  string // the table of leases
	tokens  string // the table with the last token
	trigger string // SQLite: what keeps the last token
	// The same without the schema, for the body of a trigger and for texts.
	bareLeases, bareTokens string
}

// statements are the texts for one table. Each is one statement, or one batch
// that the server runs to its end by itself, so that a client that freezes in
// between leaves no row locked. Those that judge a time lock the row first and
// read the database's clock after that (case 23).
//
// The arguments are always in this order: name, owner, token, then ttl and
// length, or data. A *row* is owner, token, ttl, expires, now.
type statements struct {
	schema []string // creates what is missing
	probe  string   // reads the last token and no lease; an error means that something is missing

	read    string // name: a row, or nothing
	get     string // name: a row, its data_token and data, or nothing
	list    string // Dialect.prefix: name, a row, its data_token and data, for each that is held or has data
	create  string // name: makes a free record if there is none
	acquire string // name, owner, the token last seen, ttl, length: the token of the grant, or nothing
	renew   string // name, owner, token, ttl, length: the token, or nothing
	release string // name, owner, token: the token, or nothing
	put     string // name, owner, token, data, its data_token: the token, or nothing
	check   string // name: a row, locked until the transaction ends, or nothing
}

// fill puts the names of t and the other pairs of names and texts into text, in
// which they stand in braces.
func fill(text string, t table, pairs ...string) string {
	pairs = append(pairs,
		"{leases}", t.leases, "{tokens}", t.tokens, "{trigger}", t.trigger,
		"{bareLeases}", t.bareLeases, "{bareTokens}", t.bareTokens)
	text = strings.NewReplacer(pairs...).Replace(text)
	return strings.TrimSpace(text)
}

// schemaText joins statements for people.
func schemaText(s statements) string { return strings.Join(s.schema, ";\n\n") + ";\n" }

// after returns the smallest string that is larger, byte by byte, than all that
// begin with prefix. "" means that there is none.
func after(prefix string) string {
	runes := []rune(prefix)
	for len(runes) > 0 {
		last := &runes[len(runes)-1]
		switch *last {
		case 0x10FFFF: // the last one
			runes = runes[:len(runes)-1]
			continue
		case 0xD7FF: // surrogates come next, which are not UTF-8
			*last = 0xE000
		default:
			*last++
		}
		return string(runes)
	}
	return ""
}

// between is Dialect.prefix where names are ordered by the byte.
func between(prefix string) []any { return []any{prefix, after(prefix)} }

// Dialects returns all dialects.
func Dialects() []Dialect { return []Dialect{Postgres, SQLServer, SQLite} }

// none reports whether d is the zero value.
func (d Dialect) none() bool { return d.statements == nil }

// identifierLen is the longest part of a table's name. PostgreSQL keeps 63
// bytes, and what belongs to the table has a longer name.
const identifierLen = 48

// checkTable checks the parts of a table's name.
func checkTable(f *lease.Faults, name string) {
	parts := strings.Split(name, ".")
	ok := len(parts) <= 2
	for _, p := range parts {
		ok = ok && isIdentifier(p)
	}
	if !ok {
		f.Add("Table", name, "a name or schema.name, of 1 to 48 letters, digits and underscores each (ASCII), no digit first")
	}
}

func isIdentifier(s string) bool {
	if s == "" || len(s) > identifierLen || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}
