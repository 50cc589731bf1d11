package verdict

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
)

// Maildir reads the mails in a Maildir folder whose recipient ends with a suffix, such as
// "@example.org".
func Maildir(folder, suffix string) ([]Mail, error) {
	var mails []Mail
	for _, sub := range []string{"new", "cur"} {
		entries, err := os.ReadDir(filepath.Join(folder, sub))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			m, err := readMail(filepath.Join(folder, sub, entry.Name()))
			if errors.Is(err, fs.ErrNotExist) {
				continue // the file was removed meanwhile
			}
			if err != nil {
				return nil, err
			}
			if strings.HasSuffix(m.To, suffix) {
				mails = append(mails, m)
			}
		}
	}
	return mails, nil
}

func readMail(path string) (Mail, error) {
	f, err := os.Open(path)
	if err != nil {
		return Mail{}, err
	}
	defer f.Close()
	m, err := mail.ReadMessage(bufio.NewReader(f))
	if err != nil {
		return Mail{}, fmt.Errorf("%s: %w", path, err)
	}
	to, err := mail.ParseAddress(m.Header.Get("To"))
	if err != nil {
		return Mail{}, fmt.Errorf("%s: %w", path, err)
	}
	return Mail{To: to.Address, MessageID: m.Header.Get("Message-ID")}, nil
}
