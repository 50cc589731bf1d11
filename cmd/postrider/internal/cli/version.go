package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/store/postgres"
)

// release holds what the linker has set. It is empty unless this is a release.
var release struct{ version, commit string }

// build identifies the program.
type build struct {
	Version       string `json:"version"`
	Commit        string `json:"commit,omitempty"`
	Modified      bool   `json:"modified,omitempty"` // built from a tree with uncommitted changes
	Go            string `json:"go"`
	Platform      string `json:"platform"`
	SchemaVersion int    `json:"schema_version"` // of the tables that this program needs
}

func currentBuild() build {
	b := build{
		Version:       "(devel)",
		Go:            runtime.Version(),
		Platform:      runtime.GOOS + "/" + runtime.GOARCH,
		SchemaVersion: postgres.SchemaVersion(),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	b.Version, b.Commit = cmp.Or(release.version, b.Version), cmp.Or(release.commit, b.Commit)
	return b
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of the program and of its schema",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			b := currentBuild()
			if a.asJSON {
				return a.json(b)
			}
			rows := [][]string{{"version", b.Version}}
			if b.Commit != "" {
				rows = append(rows, []string{"commit", b.Commit})
			}
			rows = append(rows, []string{"go", b.Go}, []string{"platform", b.Platform},
				[]string{"schema", fmt.Sprintf("version %d", b.SchemaVersion)})
			return a.table(rows)
		},
	}
}
