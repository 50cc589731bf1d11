package cli

import (
	"bufio"
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

var errDeclined = errors.New("nothing was done")

// danger holds the flags of a command that destroys something.
type danger struct {
	yes    bool
	dryRun bool
}

func (d *danger) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&d.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&d.dryRun, "dry-run", false, "only say what would be done")
}

// confirm asks for confirmation, and returns nil if the user agrees. Without a terminal only --yes
// counts.
func (a *app) confirm(d danger, question string) error {
	if d.yes {
		return nil
	}
	if !a.asks {
		return hintedError{usagef("%s There is no terminal to ask on", question), "to skip the question: add --yes"}
	}
	a.say(question + " [y/N] ")
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil { // the input ended without a line break
		a.say("\n")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}
