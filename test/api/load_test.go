package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

const root = "github.com/postrider/postrider"

// command is the package with the command line.
const command = root + "/cmd/postrider/internal/cli"

// A listed is what go list knows about a package.
type listed struct {
	ImportPath, Name, Dir, Export string
	GoFiles                       []string
	Module                        struct{ Path string }
}

// helpers are packages that only our own tests import. Nothing is promised about them.
var helpers = []string{"/store/postgres/pgtest", "/store/postgres/pgpostridertest", "/store/table/tabletest", "/admin/console/web"}

func (p listed) public() bool {
	path := strings.TrimPrefix(p.ImportPath, root)
	return p.Name != "main" && !strings.Contains(path+"/", "/internal/") && !slices.Contains(helpers, path) &&
		!strings.HasPrefix(path+"/", "/test/") && !strings.HasPrefix(path+"/", "/examples/") && !strings.HasPrefix(path+"/", "/cmd/")
}

// A workspace holds the types of packages, read from what the compiler has exported.
type workspace struct {
	public   []listed
	command  listed
	importer types.Importer
	fset     *token.FileSet
}

var loaded = sync.OnceValues(func() (*workspace, error) {
	all, err := list("-find", root+"/...")
	if err != nil {
		return nil, err
	}
	w := &workspace{fset: token.NewFileSet()}
	paths := []string{command}
	for _, p := range all {
		if p.public() {
			w.public = append(w.public, p)
			paths = append(paths, p.ImportPath)
		}
		if p.ImportPath == command {
			w.command = p
		}
	}
	compiled, err := list(append([]string{"-deps", "-export"}, paths...)...)
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	for _, p := range compiled {
		exports[p.ImportPath] = p.Export
	}
	w.importer = importer.ForCompiler(w.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("%s was not compiled", path)
		}
		return os.Open(exports[path])
	})
	return w, nil
})

func load(t *testing.T) *workspace {
	t.Helper()
	w, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func list(args ...string) (all []listed, err error) {
	var stderr strings.Builder
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Dir,Export,GoFiles,Module"}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}
