package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postrider/postrider/internal/docpage"
)

const reference = "../../../../docs/reference/"

// The reference of the command line is what --help says.
func TestCommandReference(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	var b strings.Builder
	for _, g := range root.Groups() {
		rows := ""
		for _, cmd := range root.Commands() {
			if cmd.GroupID == g.ID {
				rows += listCommands(cmd)
			}
		}
		fmt.Fprintf(&b, "## %s\n\n| command | what it does |\n|---|---|\n%s\n", strings.TrimSuffix(g.Title, ":"), rows)
	}
	b.WriteString("## Flags of all commands\n\n" + flagTable(root.PersistentFlags()))
	for _, g := range root.Groups() {
		for _, cmd := range root.Commands() {
			if cmd.GroupID == g.ID {
				describeCommand(&b, cmd)
			}
		}
	}
	docpage.Check(t, *update, reference+"cli.md", "TestCommandReference, in cmd/postrider/internal/cli", b.String())
}

// listCommands is a row for each command that does something.
func listCommands(cmd *cobra.Command) string {
	if !cmd.IsAvailableCommand() {
		return ""
	}
	row := fmt.Sprintf("| [`%s`](#%s) | %s |\n", cmd.CommandPath(), strings.ReplaceAll(cmd.CommandPath(), " ", "-"), docpage.Cell(cmd.Short))
	if isGroup(cmd) {
		row = ""
	}
	for _, sub := range cmd.Commands() {
		row += listCommands(sub)
	}
	return row
}

// isGroup reports whether a command only has commands below it. See [group].
func isGroup(cmd *cobra.Command) bool {
	return cmd.HasAvailableSubCommands() && cmd.Args != nil && cmd.Args(cmd, []string{"word"}) == nil
}

func describeCommand(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.IsAvailableCommand() {
		return
	}
	depth := strings.Repeat("#", 1+strings.Count(cmd.CommandPath(), " "))
	fmt.Fprintf(b, "\n%s %s\n\n%s.\n", depth, cmd.CommandPath(), docpage.Text(cmd.Short))
	if !isGroup(cmd) {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", cmd.UseLine())
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(cmd.Long), "\n\n") {
		switch {
		case paragraph == "":
		case strings.Contains("\n"+paragraph, "\n  "): // laid out by hand
			fmt.Fprintf(b, "\n```text\n%s\n```\n", paragraph)
		default:
			fmt.Fprintf(b, "\n%s\n", docpage.Text(paragraph))
		}
	}
	if cmd.HasExample() {
		example := strings.ReplaceAll("\n"+strings.TrimRight(cmd.Example, "\n"), "\n  ", "\n")
		fmt.Fprintf(b, "\n```sh%s\n```\n", example)
	}
	if cmd.HasAvailableLocalFlags() {
		b.WriteString("\n" + flagTable(cmd.LocalFlags()))
	}
	for _, sub := range cmd.Commands() {
		describeCommand(b, sub)
	}
}

// flagTable lists flags with their defaults. Those that stand for "nothing" are left out.
func flagTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	b.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		preset := ""
		switch f.DefValue {
		case "", "false", "0", "0s", "[]", "<nil>":
		default:
			preset = "`" + plainDuration(f.DefValue) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.TrimSpace(name+" "+value), preset, docpage.Cell(usage))
	})
	return b.String()
}

// plainDuration writes 10m for 10m0s.
func plainDuration(text string) string {
	for _, unit := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, unit) {
			text = text[:len(text)-2]
		}
	}
	return text
}
