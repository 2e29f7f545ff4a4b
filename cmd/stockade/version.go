package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// build describes this binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a work tree with changes
	Time     string `json:"time,omitempty"`     // of the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "vcs.time":
			b.Time = s.Value
		}
	}
	return b
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show which build this is",
		Example: "  stockade version\n  stockade version -o json",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			revision := b.Revision
			if b.Modified {
				revision += " with changes"
			}
			pairs := [][2]string{{"version", b.Version}}
			for _, p := range [][2]string{{"revision", revision}, {"time", b.Time}, {"go", b.Go}, {"platform", b.Platform}} {
				if p[1] != "" {
					pairs = append(pairs, p)
				}
			}
			return c.fields(b, pairs...)
		},
	}
}
