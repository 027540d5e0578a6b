package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/raftlease/raftlease"
)

// versionView is what a build says of itself.
type versionView struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, where the build knows it
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  raftlease version\n  raftlease version -o json",
		Args:    cobra.NoArgs,
		RunE: c.does(func(context.Context, *cobra.Command, []string) error {
			v := versionView{Version: raftlease.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Revision = s.Value
					}
				}
			}
			return c.show(v, func(w io.Writer) {
				fmt.Fprintf(w, "raftlease %s %s %s\n", v.Version, v.Go, v.Platform)
			})
		}),
	}
}
