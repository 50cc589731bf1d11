package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// streams are what a command speaks and listens to: data goes to out, everything else to err.
type streams struct {
	in       io.Reader
	out, err io.Writer

	asks    bool // somebody sits at in and err, and can answer a question
	watches bool // somebody sits at err, and wants to see progress
	narrow  bool // somebody sits at out, whose lines are short
}

func standardStreams() streams {
	return streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		asks:    isTerminal(os.Stdin) && isTerminal(os.Stderr),
		watches: isTerminal(os.Stderr) && os.Getenv("TERM") != "dumb",
		narrow:  isTerminal(os.Stdout),
	}
}

// isTerminal takes every character device for a terminal but the one that scripts use.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// notef tells the user something that is not data.
func (s streams) notef(format string, args ...any) {
	s.say("postrider: " + fmt.Sprintf(format, args...) + "\n")
}

// say writes to err. If that fails there is nobody to tell.
func (s streams) say(text string) { _, _ = io.WriteString(s.err, text) }

// json prints one object on one line.
func (s streams) json(v any) error { return json.NewEncoder(s.out).Encode(v) }

// table prints rows with aligned columns.
func (s streams) table(rows [][]string) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// progress shows one line that each call replaces, and nothing where nobody watches. An empty text removes the line.
func (s streams) progress(text string) {
	if s.watches {
		s.say("\r\x1b[K" + text)
	}
}
