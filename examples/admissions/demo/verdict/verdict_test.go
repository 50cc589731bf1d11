package verdict

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// good returns a run of two applicants in which nothing went wrong.
func good() ([]Promise, Facts) {
	var promises []Promise
	var facts Facts
	for _, who := range []string{"an", "wei"} {
		email, application := who+"@example.org", "application of "+who
		promises = append(promises, Promise{email, application})
		facts.Applications = append(facts.Applications, Application{application, email, "completed"})
		facts.Payments = append(facts.Payments, Payment{"payment of " + who, application, "succeeded"})
		facts.Mails = append(facts.Mails, Mail{email, "<" + who + "@admissions>"})
	}
	return promises, facts
}

func TestClean(t *testing.T) {
	if v := Check(good()); !v.Clean() || v.Promised != 2 {
		t.Error(v)
	}
}

// TestWrong checks that every kind of failure is detected.
func TestWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil         func(*[]Promise, *Facts)
		lost, doubled []string
	}{
		"lost mail": {
			spoil: func(_ *[]Promise, f *Facts) { f.Mails = f.Mails[:1] },
			lost:  []string{"wei@example.org: no mail"},
		},
		"doubled mail": {
			spoil:   func(_ *[]Promise, f *Facts) { f.Mails = append(f.Mails, f.Mails[0]) },
			doubled: []string{"an@example.org: 2 mails"},
		},
		"doubled mail under another ID": {
			spoil:   func(_ *[]Promise, f *Facts) { f.Mails = append(f.Mails, Mail{"an@example.org", "<other@admissions>"}) },
			doubled: []string{"an@example.org: 2 mails"},
		},
		"mail to a stranger": {
			spoil:   func(_ *[]Promise, f *Facts) { f.Mails = append(f.Mails, Mail{"eve@example.org", "<eve@admissions>"}) },
			doubled: []string{"eve@example.org: has a mail without an application"},
		},
		"lost application": {
			spoil: func(_ *[]Promise, f *Facts) { f.Applications = f.Applications[1:] },
			lost:  []string{"an@example.org: application application of an is not there"},
		},
		"other application": {
			spoil: func(p *[]Promise, f *Facts) { f.Applications[0].ID = "another" },
			lost:  []string{"an@example.org: application application of an is not there"},
		},
		"doubled application": {
			spoil: func(_ *[]Promise, f *Facts) {
				f.Applications = append(f.Applications, Application{"another", "an@example.org", "submitted"})
			},
			doubled: []string{"an@example.org: 2 applications"},
		},
		"application of nobody": {
			spoil: func(_ *[]Promise, f *Facts) {
				f.Applications = append(f.Applications, Application{"another", "eve@example.org", "submitted"})
			},
			doubled: []string{"eve@example.org: has an application that nobody was told of"},
		},
		"stuck application": {
			spoil: func(_ *[]Promise, f *Facts) { f.Applications[0].Status = "paid" },
			lost:  []string{"an@example.org: application application of an is paid"},
		},
		"lost payment": {
			spoil: func(_ *[]Promise, f *Facts) { f.Payments = f.Payments[1:] },
			lost:  []string{"an@example.org: no payment"},
		},
		"unpaid payment": {
			spoil: func(_ *[]Promise, f *Facts) { f.Payments[0].Status = "due" },
			lost:  []string{"an@example.org: payment payment of an is due"},
		},
		"doubled payment": {
			spoil: func(_ *[]Promise, f *Facts) {
				f.Payments = append(f.Payments, Payment{"another", f.Payments[0].Application, "due"})
			},
			doubled: []string{"an@example.org: 2 payments"},
		},
		"doubled promise": {
			spoil:   func(p *[]Promise, _ *Facts) { *p = append(*p, (*p)[0]) },
			doubled: []string{"an@example.org: was promised two applications"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			promises, facts := good()
			c.spoil(&promises, &facts)
			v := Check(promises, facts)
			if v.Clean() || !slices.Equal(v.Lost, c.lost) || !slices.Equal(v.Doubled, c.doubled) {
				t.Errorf("%v\nwant lost %q, doubled %q", v, c.lost, c.doubled)
			}
		})
	}
}

// TestMaildir checks that two files count as two mails, even with the same Message-ID, and that
// mails of other runs do not count.
func TestMaildir(t *testing.T) {
	folder := t.TempDir()
	for i, m := range []struct{ sub, to string }{
		{"new", "An <an@run1.example.org>"}, {"cur", "an@run1.example.org"}, {"new", "=?utf-8?q?V=C5=A9?= <vu@run2.example.org>"}, {"tmp", "half"},
	} {
		if err := os.MkdirAll(filepath.Join(folder, m.sub), 0o700); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("To: %s\r\nMessage-ID: <1@admissions>\r\n\r\nhello", m.to)
		if err := os.WriteFile(filepath.Join(folder, m.sub, fmt.Sprint(i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mails, err := Maildir(folder, "@run1.example.org")
	want := Mail{"an@run1.example.org", "<1@admissions>"}
	if err != nil || !slices.Equal(mails, []Mail{want, want}) {
		t.Errorf("%v, %v", mails, err)
	}
}
