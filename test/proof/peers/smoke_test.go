package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/built"
	"github.com/postrider/postrider/test/proof/peers/page"
	"github.com/postrider/postrider/test/proof/peers/peer"
	"github.com/postrider/postrider/test/proof/peers/result"
	"github.com/postrider/postrider/test/proof/peers/trial"
)

// TestMain lets the test binary be the relay, as the command is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "relay" {
		if err := peer.Run(context.Background(), os.Args[2]); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// TestSmoke runs every kind of trial once, briefly, with Postrider and with a hand-written loop,
// and generates the page.
func TestSmoke(t *testing.T) {
	need.Long(t, "half a minute")
	server, nats := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), pgtest.Env(t, "POSTRIDER_TEST_NATS")
	command := built.Program(t, "cmd/postrider")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "results.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l := &trial.Lab{
		Options: trial.Options{
			Peers: []string{"postrider", "loop-delete"}, Brokers: []string{"nats"}, Main: "nats", Works: trial.Trials, Repeat: 1,
			Phase: 500 * time.Millisecond, Warm: 100 * time.Millisecond, Hold: time.Second, Cap: 20 * time.Second, Rate: 200, Writers: 4, Backlog: 2000,
		},
		Programs:  peer.Programs{Self: self, Postrider: command, Scratch: t.TempDir()},
		Server:    server,
		Addresses: map[string]string{"nats": nats},
		Record:    func(line result.Line) error { return result.Write(file, line) },
		Say:       t.Logf,
	}
	if err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Introduce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}

	run, err := result.Read(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 2*7; len(run.Cells) != want {
		t.Errorf("%d cells, not %d", len(run.Cells), want)
	}
	for _, c := range run.Cells {
		if c.Error != "" || c.Committed+c.Delivered == 0 || c.Lost != 0 || c.Phantoms != 0 {
			t.Errorf("%+v", c)
		}
		if c.Work == result.Order && c.Peer == "postrider" && c.Inversions != 0 {
			t.Errorf("%d of %d messages arrived out of order", c.Inversions, c.Committed)
		}
		if c.Work == result.Drain && (c.RelayMemory == 0 || c.Delivered < 2000) {
			t.Errorf("%+v", c)
		}
	}
	if text := page.Text(run, "plots"); text == "" || len(page.Plots(run)) != 5 {
		t.Error("no page can be made of it")
	}
}
