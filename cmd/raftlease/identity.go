package main

import (
	"github.com/spf13/pflag"

	"github.com/raftlease/raftlease/lease"
)

// identity is how a command line names a grant.
type identity struct {
	owner string
	token uint64
}

func (i *identity) flags(f *pflag.FlagSet) {
	f.StringVar(&i.owner, "owner", "", "the owner that acquired it")
	f.Uint64Var(&i.token, "token", 0, "the token that acquire printed")
}

// grant returns the grant of name, which has no deadline in this process.
func (i *identity) grant(name string) lease.Grant {
	return lease.Grant{Name: name, Owner: i.owner, Token: i.token}
}
