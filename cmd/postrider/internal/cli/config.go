package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

const defaultConfig = "postrider.yaml"

func (a *app) configCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "config",
		Short: "Check and show the configuration file",
		Long: "Works with the file that \"postrider relay --config\" serves. FILE defaults to $POSTRIDER_CONFIG, then to\n" +
			"./" + defaultConfig + ".",
		Example: "  postrider config validate\n" +
			"  postrider config show --json | jq .feeds\n" +
			"  postrider config schema > postrider.schema.json",
	})
	cmd.AddCommand(a.configValidateCommand(), a.configShowCommand(), a.configSchemaCommand())
	return cmd
}

// configPath returns the path of the file, and reports whether an argument or the environment has
// set it.
func configPath(given string) (path string, said bool) {
	path = cmp.Or(given, os.Getenv("POSTRIDER_CONFIG"))
	return cmp.Or(path, defaultConfig), path != ""
}

// namesFile lets a command take its file as an argument or with --config.
func namesFile(cmd *cobra.Command, file *string) *cobra.Command {
	addConfig(cmd, file)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *file != "" {
			args = append([]string{*file}, args...)
		}
		if len(args) > 1 {
			return usagef("%s takes one file, but got %q too", cmd.CommandPath(), args[1])
		}
		*file = strings.Join(args, "")
		return nil
	}
	return cmd
}

// loadConfig reads the file. It also checks the addresses and tables of databases, which package
// config cannot check, and, if open is set, opens each destination to find conflicting options. It
// returns all mistakes as [config.Mistakes].
func (a *app) loadConfig(path string, open bool) (*config.File, error) {
	f, err := config.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, hintedError{usageError{err}, "FILE or $POSTRIDER_CONFIG says where it is; for what can be set: postrider config schema"}
	}
	if err != nil {
		return nil, err
	}
	var mistakes config.Mistakes
	for name, d := range f.Databases {
		db := fileDatabase(name, d)
		a.others = append(a.others, db)
		if err := db.check(); err != nil {
			mistakes = append(mistakes, f.Mistake("databases."+name+".url", a.scrub(err.Error())))
		}
		for _, text := range db.checkTable(route.Match{}) {
			mistakes = append(mistakes, f.Mistake("databases."+name, text))
		}
	}
	for name := range f.Feeds {
		plan, err := f.Feed(name)
		if err != nil || len(mistakes) > 0 {
			continue // already reported
		}
		for _, text := range fileDatabase(plan.DatabaseName, plan.Database).checkTable(plan.Only) {
			mistakes = append(mistakes, f.Mistake("feeds."+name+".only", strings.TrimPrefix(text, "only: ")))
		}
	}
	for name, d := range f.Destinations {
		if !open {
			break
		}
		if pub, err := a.openDestination(d, slog.New(slog.DiscardHandler)); err != nil {
			mistakes = append(mistakes, f.Mistake("destinations."+name, a.scrub(strings.ReplaceAll(err.Error(), "\n", "; "))))
		} else if err := pub.Close(); err != nil {
			mistakes = append(mistakes, f.Mistake("destinations."+name, a.scrub(err.Error())))
		}
	}
	if len(mistakes) > 0 {
		return nil, mistakes.Sorted()
	}
	return f, nil
}

// useConfig is loadConfig for commands that need the file. It prints mistakes one per line, in the
// format of compilers, so that editors find the positions.
func (a *app) useConfig(path string, open bool) (*config.File, error) {
	f, err := a.loadConfig(path, open)
	var mistakes config.Mistakes
	if errors.As(err, &mistakes) {
		a.say(a.scrub(mistakes.Error()) + "\n")
		return nil, hintedError{usagef("%s", count(len(mistakes), "mistake")+" in "+path), "what can be set: postrider config schema"}
	}
	return f, err
}

// checked is the result of "config validate".
type checked struct {
	File     string          `json:"file"`
	Valid    bool            `json:"valid"`
	Mistakes config.Mistakes `json:"mistakes"`
	Warnings config.Mistakes `json:"warnings"`
}

func (a *app) configValidateCommand() *cobra.Command {
	var open bool
	var file string
	cmd := namesFile(&cobra.Command{
		Use:   "validate [FILE]",
		Short: "Validate a configuration and report all errors with their positions",
		Long: "Reports every mistake at once, as FILE:LINE:COLUMN. It asks neither databases nor brokers. Variables that the\n" +
			"file needs must be set. With --open it also opens each destination, as a relay would: that finds options that\n" +
			"contradict each other, and files that are missing. Exit code 2 means mistakes; warnings do not count.",
		RunE: func(*cobra.Command, []string) error {
			path, _ := configPath(file)
			if a.asJSON {
				return a.validateJSON(path, open)
			}
			f, err := a.useConfig(path, open)
			if err != nil {
				return err
			}
			for _, w := range f.Warnings() {
				a.say(strings.Replace(w.String(), w.Path+": ", "warning: "+w.Path+": ", 1) + "\n")
			}
			_, err = fmt.Fprintf(a.out, "%s: no mistakes: %s, %s, %s\n", path,
				count(len(f.Databases), "database"), count(len(f.Destinations), "destination"), count(len(f.Feeds), "feed"))
			return err
		},
	}, &file)
	cmd.Flags().BoolVar(&open, "open", false, "also open each destination, without connecting")
	return cmd
}

func (a *app) validateJSON(path string, open bool) error {
	result := checked{File: path, Mistakes: config.Mistakes{}, Warnings: config.Mistakes{}}
	f, err := a.loadConfig(path, open)
	if err == nil {
		result.Valid = true
		result.Warnings = append(result.Warnings, f.Warnings()...)
	} else if !errors.As(err, &result.Mistakes) {
		return err
	}
	if printed := a.json(result); printed != nil || result.Valid {
		return printed
	}
	return usagef("%s in %s", count(len(result.Mistakes), "mistake"), path)
}

func (a *app) configShowCommand() *cobra.Command {
	var file string
	return namesFile(&cobra.Command{
		Use:   "show [FILE]",
		Short: "Show a configuration with defaults and without secrets",
		RunE: func(*cobra.Command, []string) error {
			path, _ := configPath(file)
			f, err := a.useConfig(path, false)
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.json(f.Redacted())
			}
			text, err := f.Redacted().YAML()
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		},
	}, &file)
}

func (a *app) configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the file, for editors",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(config.Schema())
			return err
		},
	}
}

// count returns a number with its noun, in the plural if needed.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
