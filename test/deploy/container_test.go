package deploy_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/internal/port"
)

// inside runs the program as the container does: as an unprivileged user, in a read-only root file
// system that contains nothing else.
const inside = `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec chroot --userspec=65532:65532 "$0" /usr/bin/postrider "$@"`

// container is the root file system of a container.
type container struct {
	t    *testing.T
	root string
}

func newContainer(t *testing.T, config string) container {
	t.Helper()
	need.Root(t, "only root can change the root folder")
	c := container{t, filepath.Join(t.TempDir(), "root")}
	for _, dir := range []string{"etc/postrider", "usr/bin"} {
		if err := os.MkdirAll(filepath.Join(c.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.configure(config)
	if err := os.Link(program(t), filepath.Join(c.root, "usr/bin/postrider")); err != nil {
		run(t, "cp", program(t), filepath.Join(c.root, "usr/bin/postrider")) // another file system
	}
	return c
}

func (c container) configure(config string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.root, "etc/postrider/postrider.yaml"), []byte(config), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func (c container) args(args ...string) []string {
	return append([]string{"--mount", "sh", "-c", inside, c.root}, args...)
}

var containerEnv = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "POSTRIDER_CONFIG=/etc/postrider/postrider.yaml"}

func (c container) run(args ...string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), "unshare", c.args(args...)...)
	cmd.Env = containerEnv
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheProgramNeedsNothing(t *testing.T) {
	f, err := elf.Open(program(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if needs, err := f.ImportedLibraries(); err != nil || len(needs) > 0 {
		t.Errorf("it needs %q, %v", needs, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it needs a dynamic linker")
		}
	}
}

func TestARelayInAnEmptyReadOnlyRoot(t *testing.T) {
	l := newLog(t)
	c := newContainer(t, l.config(port.For(t)))
	if out, err := c.run("healthcheck"); err == nil || !strings.Contains(out, "the relay does not answer") {
		t.Errorf("before it runs: %v\n%s", err, out)
	}
	r := start(t, containerEnv, "unshare", c.args("relay")...)
	r.until("ready", func() bool { _, err := c.run("healthcheck"); return err == nil })
	if out, err := c.run("healthcheck", "--live"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	l.enqueue(t)
	r.until("carried", func() bool { return strings.Contains(r.said.String(), "order.placed") })
	if out, err := c.run("man", "/written"); err == nil {
		t.Errorf("somebody could write\n%s", out)
	}
	r.stop()
}

// TestZonesInAnEmptyRoot checks that reconcilers can use time zones in a container without a time
// zone database.
func TestZonesInAnEmptyRoot(t *testing.T) {
	c := newContainer(t, `databases: {app: {url: "postgres://nobody@localhost/app"}}
destinations: {out: {url: "stdout:"}}
feeds: {default: {}}
reconcilers: {held: {feed: default, consumer: billing, cron: "0 8 * * *", zone: Europe/Berlin}}
`)
	if out, err := c.run("config", "validate"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestImageOfAllPlatforms checks that the image's build gets the program of each platform, and
// refuses what does not belong together.
func TestImageOfAllPlatforms(t *testing.T) {
	program(t)
	dir := t.TempDir()
	// It stands for the builder: it shows its arguments, and keeps the last one, the context.
	builder := filepath.Join(dir, "builder")
	if err := os.WriteFile(builder, []byte("#!/bin/sh\necho \"$@\"\nfor last; do :; done\ncp -r \"$last\" "+dir+"/context\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	certificates := filepath.Join(dir, "authorities.crt")
	if err := os.WriteFile(certificates, []byte("authorities"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINER_BUILD", builder)
	t.Setenv("CA_CERTIFICATES", certificates)
	pack := func(version, arch string) string {
		name := "postrider_" + version + "_linux_" + arch
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"postrider", "LICENSE"} {
			if err := os.WriteFile(filepath.Join(dir, name, file), []byte(arch), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run(t, "tar", "-C", dir, "-czf", filepath.Join(dir, name+".tar.gz"), name)
		return filepath.Join(dir, name+".tar.gz")
	}
	amd64, arm64, newer := pack("1.2.3", "amd64"), pack("1.2.3", "arm64"), pack("1.2.4", "arm64")
	build := root + "/deploy/container/build"

	said := run(t, build, amd64, arm64, "example.com/postrider:1.2.3")
	for _, want := range []string{"--platform linux/amd64,linux/arm64 ", " --tag example.com/postrider:1.2.3 ", " VERSION=1.2.3 "} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %s", want, said)
		}
	}
	if strings.Contains(said, "TARGETARCH") {
		t.Errorf("one platform for both: %s", said)
	}
	for file, want := range map[string]string{"amd64/postrider": "amd64", "arm64/postrider": "arm64", "ca-certificates.crt": "authorities"} {
		if got := read(t, filepath.Join(dir, "context", file)); got != want {
			t.Errorf("%s is %q", file, got)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY (\S+) `).FindAllStringSubmatch(read(t, root+"/deploy/container/Containerfile"), -1) {
		for _, arch := range []string{"amd64", "arm64"} {
			read(t, filepath.Join(dir, "context", strings.ReplaceAll(m[1], "${TARGETARCH}", arch)))
		}
	}

	if err := os.RemoveAll(filepath.Join(dir, "context")); err != nil {
		t.Fatal(err)
	}
	said = run(t, build, filepath.Join(released, archive()))
	for _, want := range []string{"--platform linux/" + runtime.GOARCH + " ", "--build-arg TARGETARCH=" + runtime.GOARCH + " ", " --tag postrider:latest "} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %s", want, said)
		}
	}
	for _, wrong := range [][]string{nil, {"example.com/postrider"}, {amd64, newer}, {amd64, amd64}, {"postrider_1.2.3_darwin_arm64.tar.gz"}} {
		if out, err := exec.CommandContext(t.Context(), build, wrong...).CombinedOutput(); err == nil {
			t.Errorf("%q: %s", wrong, out)
		}
	}
}

var instruction = regexp.MustCompile(`(?m)^(USER|ENTRYPOINT|CMD|ENV|HEALTHCHECK|COPY .*postrider) .*$`)

// TestBothImagesAreTheSame checks that a build from source gives the same image as a release.
func TestBothImagesAreTheSame(t *testing.T) {
	of := func(file string) string {
		_, last, _ := strings.Cut(read(t, filepath.Join(root, "deploy/container", file)), "FROM scratch")
		found := strings.Join(instruction.FindAllString(last, -1), "\n")
		return regexp.MustCompile(`COPY (--from=build )?\S*postrider `).ReplaceAllString(found, "COPY postrider ")
	}
	first, second := of("Containerfile"), of("Containerfile.source")
	if first != second {
		t.Errorf("Containerfile:\n%s\nContainerfile.source:\n%s", first, second)
	}
	for _, want := range []string{"USER 65532:65532", `ENTRYPOINT ["/usr/bin/postrider"]`, "COPY postrider /usr/bin/postrider"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %s in\n%s", want, first)
		}
	}
}
