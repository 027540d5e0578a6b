// Package sqltest has the tests of sqlstore that need a database.
package sqltest
