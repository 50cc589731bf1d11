package scale

import (
	"bytes"
	_ "embed" // for the default constants
	"encoding/json"
	"fmt"
	"io"
	"os"
)

//go:embed measured.json
var measured []byte

// Measured returns the constants that are embedded in the program.
func Measured() (*Set, error) { return decode("the constants of this program", measured) }

// Load reads constants from a file written by "postrider bench scale --json".
func Load(path string) (*Set, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return decode(path, text)
}

func decode(from string, text []byte) (*Set, error) {
	var s Set
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // reject other kinds of files
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s: more follows than one object", from)
	}
	return &s, nil
}
