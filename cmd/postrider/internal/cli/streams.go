package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// streams are the standard streams of a command: data goes to out, everything else to err.
type streams struct {
	in       io.Reader
	out, err io.Writer

	asks    bool // in and err are a terminal: questions can be asked
	watches bool // err is a terminal: show progress
	narrow  bool // out is a terminal: keep lines short
}

func standardStreams() streams {
	return streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		asks:    isTerminal(os.Stdin) && isTerminal(os.Stderr),
		watches: isTerminal(os.Stderr) && os.Getenv("TERM") != "dumb",
		narrow:  isTerminal(os.Stdout),
	}
}

// isTerminal takes every character device other than the null device for a terminal.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// notef prints a note for the user, which is not data.
func (s streams) notef(format string, args ...any) {
	s.say("postrider: " + fmt.Sprintf(format, args...) + "\n")
}

// say writes to err. It ignores errors, which it could not report.
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

// progress shows a line that the next call replaces, if err is a terminal. An empty text removes
// the line.
func (s streams) progress(text string) {
	if s.watches {
		s.say("\r\x1b[K" + text)
	}
}
