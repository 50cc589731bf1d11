package deploy_test

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDevcontainer checks that the development container has the version of Go that go.work needs,
// and that its commands exist and start servers that exist.
func TestDevcontainer(t *testing.T) {
	t.Parallel()
	var c struct {
		Name, Image       string
		Features          map[string]struct{ Version string }
		PostCreateCommand string
		PostStartCommand  string
	}
	d := json.NewDecoder(strings.NewReader(read(t, root+"/.devcontainer/devcontainer.json")))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	feature := regexp.MustCompile(`^[a-z.]+(/[a-z]+)+:\d+$`)
	for name, f := range c.Features {
		if !feature.MatchString(name) || f.Version == "" {
			t.Errorf("the feature %q needs a version of its own and one of what it installs, not %q", name, f.Version)
		}
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, root+"/go.work"))
	if version == nil || !strings.HasSuffix(c.Image, ":"+version[1]) {
		t.Errorf("the image is %s, go.work has %q", c.Image, version)
	}
	for _, command := range []string{c.PostCreateCommand, c.PostStartCommand} {
		words := strings.Fields(command)
		if len(words) < 3 || words[1] != "up" && words[1] != "start" {
			t.Errorf("%q starts no server", command)
			continue
		}
		known, err := exec.CommandContext(t.Context(), root+"/"+words[0], "list").CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v\n%s", command, err, known)
		}
		for _, server := range words[2:] {
			if !slices.Contains(strings.Fields(string(known)), server) {
				t.Errorf("%q: there is no server %s", command, server)
			}
		}
	}
}
