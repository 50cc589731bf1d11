package docpage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// failing is a testing.TB that records the message of Fatalf.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	panic(f)
}

func (f *failing) run(page, want string) (why string) {
	defer func() {
		if p := recover(); p != nil && p != any(f) {
			panic(p)
		}
		why = f.why
	}()
	Check(f, false, page, "TestX, in folder", want)
	return ""
}

// TestCheck: a page that differs fails and names the line; -update corrects it and leaves the rest
// of the page unchanged.
func TestCheck(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	const text = "# Title\n\n<!-- generated: go test -run TestX -update, in folder -->\n" + end + "\nThe end.\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if why := (&failing{TB: t}).run(page, "one\ntwo"); !strings.Contains(why, "+ one") {
		t.Errorf("an empty page: %q", why)
	}
	Check(t, true, page, "TestX, in folder", "one\ntwo")
	if why := (&failing{TB: t}).run(page, "one\ntwo"); why != "" {
		t.Errorf("a page that is as it should be: %q", why)
	}
	if why := (&failing{TB: t}).run(page, "one\nthree"); !strings.Contains(why, "- two\n+ three") {
		t.Errorf("another line: %q", why)
	}
	if why := (&failing{TB: t}).run(page, "one"); why == "" {
		t.Error("a line that is no longer there was not seen")
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(got); !strings.HasPrefix(s, "# Title\n") || !strings.HasSuffix(s, "\nThe end.\n") || !strings.Contains(s, "\none\ntwo\n") {
		t.Errorf("the page is now\n%s", s)
	}
}
