package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
)

// hashes returns the SHA-256 of all files in a directory except run.json, which contains the
// hashes, and the verdict. Folders and hidden files are left out.
func hashes(dir fs.FS) (map[string]string, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		if !entry.Type().IsRegular() || name == runFile || name == VerdictFile || name[0] == '.' {
			continue
		}
		if sums[name], err = hash(dir, name); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

func hash(dir fs.FS, name string) (string, error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
