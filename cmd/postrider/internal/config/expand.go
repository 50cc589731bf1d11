package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxSecret is the maximum size of a ${file:...}, in bytes.
const maxSecret = 64 << 10

// variable matches ${NAME}, ${NAME:-default} and ${file:/path}, and the escape $${.
var (
	variable = regexp.MustCompile(`\$\$\{|\$\{[^{}]*\}`)
	unclosed = regexp.MustCompile(`\$\{`)
	varName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expander replaces variables in values.
type expander struct {
	env    func(string) (string, bool)
	folder string // the base of relative paths
}

// expand returns the value with its variables replaced, reports whether a part of it came from a
// file, and returns all mistakes joined.
func (e *expander) expand(text string) (value string, secret bool, err error) {
	if !strings.Contains(text, "${") {
		return text, false, nil
	}
	var errs []error
	if rest := variable.ReplaceAllString(text, ""); unclosed.MatchString(rest) {
		errs = append(errs, errors.New("a ${ is not closed; write $${ for the characters themselves"))
	}
	value = variable.ReplaceAllStringFunc(text, func(match string) string {
		if match == "$${" {
			return "${"
		}
		got, fromFile, err := e.lookup(match[2 : len(match)-1])
		if err != nil {
			errs = append(errs, err)
		}
		secret = secret || fromFile
		return got
	})
	return value, secret, errors.Join(errs...)
}

func (e *expander) lookup(name string) (value string, fromFile bool, err error) {
	if path, ok := strings.CutPrefix(name, "file:"); ok {
		value, err = e.read(path)
		return value, true, err
	}
	name, fallback, hasFallback := strings.Cut(name, ":-")
	if !varName.MatchString(name) {
		return "", false, fmt.Errorf("${%s} is not a variable: want ${NAME}, ${NAME:-default} or ${file:/path}", name)
	}
	if value, ok := e.env(name); ok && (value != "" || !hasFallback) {
		return value, false, nil
	}
	if !hasFallback {
		return "", false, fmt.Errorf("the variable %s is not set; ${%s:-default} would give it a default", name, name)
	}
	return fallback, false, nil
}

// read returns the content of a file without its trailing line breaks.
func (e *expander) read(path string) (string, error) {
	if path == "" {
		return "", errors.New("${file:} names no file")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.folder, path)
	}
	// Reading a pipe or a terminal would block.
	if info, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("${file:}: %w", err)
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("${file:}: %s is not a regular file", path)
	}
	f, err := os.Open(path) //nolint:gosec // the user says which file
	if err != nil {
		return "", fmt.Errorf("${file:}: %w", err)
	}
	defer f.Close() //nolint:errcheck // was only read
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("${file:}: %w", err)
	}
	if len(data) > maxSecret {
		return "", fmt.Errorf("${file:}: %s is larger than %d bytes", path, maxSecret)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}
