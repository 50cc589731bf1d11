package fault_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

var databaseChecks = map[string]func(s *scene){
	"database-kill":  (*scene).databaseKilled,
	"database-pause": func(s *scene) { s.databasePaused("database-pause") },
	"standby-pause":  func(s *scene) { s.databasePaused("standby-pause") },
	"failover":       (*scene).failedOver,
	"restore":        (*scene).restored,
	"power-loss":     (*scene).powerLost,
	"disk-full":      (*scene).diskFull,
}

const (
	synchronous = "SELECT count(*)::text FROM pg_stat_replication WHERE sync_state = 'sync'"
	identity    = "SELECT system_identifier::text || ' ' || (SELECT oid FROM pg_database WHERE datname = current_database()) FROM pg_control_system()"
)

func (s *scene) databaseKilled() {
	s.exec(s.AdminDSN(), "INSERT INTO facts VALUES ('before the crash')")
	born := s.ask("SELECT pg_postmaster_start_time()::text")
	r := s.begin("database-kill", "")
	if err := s.try(s.ProducerDSN(), "SELECT 1", 2*time.Second); err == nil {
		s.Fatal("the database answers")
	}
	s.heal(r)
	s.expect("SELECT count(*)::text FROM facts WHERE name = 'before the crash'", "1")
	if s.ask("SELECT pg_postmaster_start_time()::text") == born {
		s.Fatal("it is the same server")
	}
}

// databasePaused checks that a commit gets neither a response nor an error until the fault is
// healed.
func (s *scene) databasePaused(kind string) {
	s.Helper()
	r := s.begin(kind, "")
	s.unanswered(s.ProducerDSN(), "INSERT INTO facts VALUES ('paused')")
	s.heal(r)
	s.eventually("the standby follows", func() bool { return s.ask(synchronous) == "1" })
}

func (s *scene) failedOver() {
	s.exec(s.ProducerDSN(), "INSERT INTO facts VALUES ('before the failover')")
	port, timeline := s.ask("SHOW port"), s.ask("SELECT timeline_id::text FROM pg_control_checkpoint()")
	r := s.begin("failover", "")
	s.expect("SELECT count(*)::text FROM facts WHERE name = 'before the failover'", "1")
	s.expect("SELECT pg_is_in_recovery()::text", "false")
	if s.ask("SHOW port") == port {
		s.Fatal("the primary is the old one")
	}
	s.exec(s.ProducerDSN(), "INSERT INTO facts VALUES ('after the failover')") // does not wait for a standby
	s.heal(r)
	s.expect(synchronous, "1")
	if s.ask("SELECT timeline_id::text FROM pg_control_checkpoint()") == timeline {
		s.Fatal("the timeline is the old one")
	}
}

func (s *scene) restored() {
	s.exec(s.ProducerDSN(), "INSERT INTO facts VALUES ('before the copy')")
	before := s.ask(identity)
	r := s.begin("restore", "")
	if s.ask(identity) == before {
		s.Fatal("it is the same database")
	}
	s.expect("SELECT count(*)::text FROM facts WHERE name = 'before the copy'", "1")
	s.eventually("relays pause", func() bool { return strings.Contains(s.relayLog(), "rebase") })
	s.heal(r)
	s.expect(synchronous, "1")
	if err := s.RelaysReady(s.Context()); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) relayLog() string {
	var all strings.Builder
	for _, p := range s.Relays() {
		text, err := os.ReadFile(filepath.Join(s.Options.Dir, p.Name()+".log"))
		if err != nil {
			s.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// powerLost checks that unsynced writes are gone, and that synced or committed data remain.
func (s *scene) powerLost() {
	dir := s.ask("SHOW data_directory")
	synced, unsynced := filepath.Join(filepath.Dir(dir), "synced"), filepath.Join(filepath.Dir(dir), "unsynced")
	for _, file := range []string{synced, unsynced} {
		if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
			s.Fatal(err)
		}
		if file == synced {
			if err := exec.Command("sync", file).Run(); err != nil {
				s.Fatal(err)
			}
		}
	}
	s.exec(s.ProducerDSN(), "INSERT INTO facts VALUES ('before the night')")
	// A commit that waits for nothing is lost, unless another commit has synced the WAL. So it
	// comes last.
	r := s.begin("power-loss", "")
	s.heal(r)
	if text, err := os.ReadFile(synced); err != nil || string(text) != "text" {
		s.Errorf("what was synced: %q, %v", text, err)
	}
	if text, err := os.ReadFile(unsynced); err == nil && string(text) == "text" {
		s.Error("what was not synced is still there")
	}
	s.expect("SELECT count(*)::text FROM facts WHERE name = 'before the night'", "1")
	s.eventually("the standby follows", func() bool { return s.ask(synchronous) == "1" })
}

func (s *scene) diskFull() {
	r := s.begin("disk-full", "")
	err := s.try(s.AdminDSN(), "CREATE TABLE large AS SELECT repeat('x', 1000) FROM generate_series(1, 200000)", 20*time.Second)
	if err == nil {
		s.Error("200 MB found their place")
	}
	s.Log(err)
	s.heal(r)
	s.exec(s.AdminDSN(), "CREATE TABLE IF NOT EXISTS large AS SELECT repeat('x', 1000) FROM generate_series(1, 200000)")
	s.exec(s.AdminDSN(), "DROP TABLE large")
}
