package world_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

const (
	orphaning = "POSTRIDER_TEST_ORPHANING"
	instance  = "orphans"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(orphaning); dir != "" {
		os.Exit(abandoned(dir))
	}
	os.Exit(m.Run())
}

// abandoned starts a world and waits to be killed. Its relays' binary can be any program.
func abandoned(dir string) int {
	w, err := world.Start(context.Background(), options(dir))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if _, err := w.Spawn(world.Program{Name: "orphan", Path: "sleep", Args: []string{"86401"}}); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	select {}
}

func options(dir string) world.Options {
	return world.Options{
		Dir: dir, Postrider: filepath.Join(dir, "postrider"), Instance: instance, ImageSize: 2 << 30,
		Without: []string{world.Kafka, world.NATS, world.RabbitMQ, world.Redis},
	}
}

// TestClean kills a harness, and checks that Clean removes everything of its world: processes,
// mounts, network namespaces.
func TestClean(t *testing.T) {
	need.Long(t, "half a minute")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "postrider"), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	harness := exec.Command(os.Args[0])
	harness.Env = append(os.Environ(), orphaning+"="+dir)
	out, err := harness.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		t.Log(lines.Text())
	}
	_ = harness.Process.Kill()
	_ = harness.Wait()
	if left := remains(t); len(left) == 0 {
		t.Fatal("the world was not there")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := world.Clean(ctx, instance); err != nil {
		t.Fatal(err)
	}
	if left := remains(t); len(left) > 0 {
		t.Errorf("left behind: %s", strings.Join(left, "\n"))
	}
}

// remains returns what still belongs to the instance: mounts, network namespaces, processes.
func remains(t *testing.T) []string {
	t.Helper()
	var left []string
	for _, argv := range [][]string{{"cat", "/proc/self/mounts"}, {"ip", "netns", "list"}, {"ip", "route", "show"}, {"ps", "axww", "-o", "stat,args"}} {
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil {
			t.Fatalf("%v: %v", argv, err)
		}
		for line := range strings.Lines(string(out)) {
			dead := strings.HasPrefix(line, "Z")
			if !dead && (strings.Contains(line, "@"+instance) || strings.Contains(line, "-"+instance+"-") || strings.Contains(line, "sleep 86401")) {
				left = append(left, strings.TrimSpace(line))
			}
		}
	}
	return left
}
