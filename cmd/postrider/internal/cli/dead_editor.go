package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/postrider/postrider"
)

// editByHand opens an editor on a payload, and returns what was saved. It indents compact JSON for
// the editor, and compacts the result again.
func (a *app) editByHand(ctx context.Context, m *postrider.Message) (payload []byte, err error) {
	dir, err := os.MkdirTemp("", "postrider-edit-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // best effort: the folder is readable by its owner only
	before, name := m.Payload, "payload.txt"
	var small, spread bytes.Buffer
	isJSON := json.Valid(before)
	if isJSON {
		name = "payload.json"
		_ = json.Compact(&small, before)           // it is valid
		_ = json.Indent(&spread, before, "", "  ") // it is valid
		spread.WriteByte('\n')
		before = spread.Bytes()
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, before, 0o600); err != nil {
		return nil, err
	}
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path) // an editor may have arguments
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.err, a.err
	if err := cmd.Run(); err != nil {
		return nil, hintedError{fmt.Errorf("the editor %s: %w", editor, err), "to choose another: export EDITOR=..."}
	}
	after, err := os.ReadFile(path)
	switch {
	case err != nil:
		return nil, err
	case bytes.Equal(before, after):
		return m.Payload, nil
	case isJSON && json.Valid(after) && bytes.Equal(small.Bytes(), m.Payload):
		var b bytes.Buffer
		_ = json.Compact(&b, after) // it is valid
		return b.Bytes(), nil
	}
	return after, nil
}
