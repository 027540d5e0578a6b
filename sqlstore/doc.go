// Package sqlstore keeps leases in a table of an ordinary SQL database.
package sqlstore
