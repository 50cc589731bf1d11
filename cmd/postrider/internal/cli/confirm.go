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

// confirm returns nil when the user wants it. Where nobody can be asked, only --yes says so.
func (a *app) confirm(d danger, question string) error {
	if d.yes {
		return nil
	}
	if !a.asks {
		return hintedError{usagef("%s Nobody is here to answer", question), "to go on without being asked: add --yes"}
	}
	a.say(question + " [y/N] ")
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil { // the end of the input: no line break has been typed
		a.say("\n")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}
