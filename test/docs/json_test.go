package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
)

// left matches "…" where members or elements were left out, with its comma, and strings, in order
// to skip them.
var left = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|,?\s*…\s*,?`)

// jsonText returns an error unless a block is a sequence of JSON values.
func jsonText(_ *testing.T, b block) error {
	text := left.ReplaceAllStringFunc(b.text, func(found string) string {
		switch {
		case found[0] == '"':
			return found
		case strings.HasPrefix(found, ",") && strings.HasSuffix(found, ","):
			return ","
		}
		return " "
	})
	values := json.NewDecoder(strings.NewReader(text))
	for n := 0; ; n++ {
		var value any
		err := values.Decode(&value)
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case err != nil:
			return fmt.Errorf("after %d values: %w", n, err)
		}
	}
}
