package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/raftlease/raftlease/lease"
)

// annotated is the annotation of a flag that a variable can set.
const annotated = "raftlease_variable"

// variable lets these flags also be set by RAFTLEASE_ and their name.
func variable(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		v := "RAFTLEASE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if err := flags.SetAnnotation(name, annotated, []string{v}); err != nil {
			panic("variable: " + err.Error())
		}
		flags.Lookup(name).Usage += " [" + v + "]"
	}
}

// fromEnvironment sets the flags of cmd that were not given from variables. An
// empty variable is none.
func (c *cli) fromEnvironment(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names := f.Annotations[annotated]
		if len(names) == 0 || f.Changed {
			return
		}
		value, ok := c.env(names[0])
		if !ok || value == "" {
			return
		}
		if err := f.Value.Set(value); err != nil {
			errs = append(errs, fmt.Errorf("variable %s is %q: %w", names[0], value, err))
			return
		}
		f.Changed = true
		c.variables[f.Name] = names[0]
	})
	return errors.Join(errs...)
}

// inWordsOfFlags replaces the names of fields in a *lease.InvalidError by those
// that the user of cmd knows: of flags, variables and arguments.
func (c *cli) inWordsOfFlags(cmd *cobra.Command, err error) error {
	var invalid *lease.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	told := &lease.InvalidError{}
	for _, f := range invalid.Faults {
		f.Field = c.inWords(cmd, f.Field)
		told.Faults = append(told.Faults, f)
	}
	return told
}

func (c *cli) inWords(cmd *cobra.Command, field string) string {
	name, part, _ := strings.Cut(field, "[")
	name = strings.ToLower(name)
	if name == "addrs" {
		name, part = "addr", ""
	}
	if part != "" {
		part = " " + strings.TrimSuffix(part, "]")
	}
	switch flag := cmd.Flags().Lookup(name); {
	case c.variables[name] != "":
		return "variable " + c.variables[name] + part
	case flag != nil:
		return "--" + name + part
	}
	for _, arg := range strings.Fields(cmd.Use)[1:] {
		if strings.EqualFold(strings.Trim(arg, "[]"), name) {
			return strings.ToUpper(name)
		}
	}
	return field
}
