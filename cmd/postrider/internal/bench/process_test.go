package bench

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	p, err := parseStat([]byte("42 (a (b) c) S 7 42 42 0 -1 4194560 1 2 3 4 11 22 33 44 20 0 1 0 5 6 7"))
	if err != nil || p != (process{"a (b) c", 7, 33, 77}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{"", "42 postgres S 1", "42 (x) S 1 2", "42 (x) S one 42 42 0 -1 0 1 2 3 4 11 22 33 44"} {
		if p, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

// TestProcessorTime: what this process does is seen in /proc, and in the family of its parent.
func TestProcessorTime(t *testing.T) {
	if err := needsLinux(); err != nil {
		t.Skip("n/a: " + err.Error())
	}
	before, err := readProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for now, end := before, time.Now().Add(time.Minute); now.used < before.used+5; {
		if time.Now().After(end) {
			t.Fatal("no processor time is seen")
		}
		for range 1_000_000 {
			_ = time.Since(end)
		}
		if now, err = readProcess(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	total, each, err := familyTime(before.parent)
	if err != nil || each[os.Getpid()] < before.used+5 || total < each[os.Getpid()] {
		t.Errorf("%d, %d, %v", total, each[os.Getpid()], err)
	}
	if memory, err := resident(os.Getpid()); err != nil || memory < 1<<20 {
		t.Errorf("memory: %d, %v", memory, err)
	}
	if files, err := openFiles(os.Getpid()); err != nil || files < 3 {
		t.Errorf("files: %d, %v", files, err)
	}
}
