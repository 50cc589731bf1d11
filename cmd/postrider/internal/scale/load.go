package scale

import (
	"bytes"
	_ "embed" // the constants that come with the program
	"encoding/json"
	"fmt"
	"io"
	"os"
)

//go:embed measured.json
var measured []byte

// Measured returns the constants that come with the program.
func Measured() (*Set, error) { return decode("the constants of this program", measured) }

// Load reads constants from a file that "postrider bench scale --json" has written.
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
	d.DisallowUnknownFields() // another kind of file
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s: more follows than one object", from)
	}
	return &s, nil
}
