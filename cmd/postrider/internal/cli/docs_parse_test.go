package cli

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// parseLine finds the command, and parses its flags and arguments, without running it.
func parseLine(words []string, inText bool) (*cobra.Command, error) {
	root, _ := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(words)
	if err != nil {
		return nil, err
	}
	isGroup := cmd.HasSubCommands() && !cmd.LocalNonPersistentFlags().HasFlags()
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if isGroup && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return nil, cmd.RunE(cmd, rest) // says that there is no such command
	}
	if inText {
		return cmd, flagsExist(cmd, rest)
	}
	leftOut := slices.Contains(rest, "…")
	if leftOut {
		rest = slices.DeleteFunc(slices.Clone(rest), func(word string) bool { return word == "…" })
		if cmd.Flags().Lookup(strings.TrimLeft(rest[len(rest)-1], "-")) != nil {
			rest = append(rest, "…") // the value of that flag
		}
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return nil, err
	}
	switch {
	case leftOut, cmd.Flags().Changed("help"), cmd.Flags().Changed("version"):
		return cmd, nil
	case isGroup:
		return nil, cmd.RunE(cmd, nil)
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return nil, err
	}
	return cmd, destinationOf(cmd)
}

// destinationOf judges --to and --set as if they stood in a file.
func destinationOf(cmd *cobra.Command) error {
	to, set := cmd.Flags().Lookup("to"), cmd.Flags().Lookup("set")
	if to == nil || set == nil || !strings.Contains(to.Value.String(), ":") {
		return nil
	}
	destination := map[string]string{"url": to.Value.String()}
	options, err := cmd.Flags().GetStringArray("set")
	if err != nil {
		return err
	}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		if strings.HasPrefix(value, "$") {
			continue // the reader knows
		}
		destination[name] = value
	}
	text, err := json.Marshal(map[string]any{
		"databases":    map[string]any{"app": map[string]string{"url": "host=localhost"}},
		"destinations": map[string]any{"there": destination},
		"feeds":        map[string]any{"default": map[string]string{"destination": "there"}},
	})
	if err != nil {
		return err
	}
	_, err = config.Parse("flags", text, func(string) (string, bool) { return "", false })
	return err
}

// flagsExist is what can be said of a command line in a sentence, which may leave out values and arguments.
func flagsExist(cmd *cobra.Command, words []string) error {
	for _, word := range words {
		name, isFlag := strings.CutPrefix(word, "--")
		if name, _, _ = strings.Cut(name, "="); isFlag && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
			return usagef("%s has no flag --%s", cmd.CommandPath(), name)
		}
	}
	return nil
}
