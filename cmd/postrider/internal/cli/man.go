package cli

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a folder",
		Long:    "Writes one manual page for each command into a folder, which is created if it is missing. For packagers.",
		Example: "  postrider man ./man1",
		Hidden:  true,
		Args:    named("folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same program writes the same pages
			return doc.GenManTree(root, &doc.GenManHeader{Title: "POSTRIDER", Section: "1", Source: "Postrider", Manual: "Postrider"}, args[0])
		},
	}
}
