// Package stage runs the admissions service as it would run in production, in one process each: the relay, the pages, the
// workers and the payment provider, with a network between them and the queue that can be cut. What runs is written into a
// folder, so that one command can start it, another kill a part of it, and a third end it.
package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Settings say where everything is. Addresses are hosts with ports.
type Settings struct {
	Postrider  string // the programs
	Admissions string
	Demo       string
	Config     string // the file of the relay

	Database string // addresses of the servers, as URLs
	Queue    string
	SMTP     string
	Maildir  string // where the mail server keeps what it takes

	Prefix  string // of the names in the queue, so that several stages can share a server
	Network string // where the relay and the workers find the queue
	Pages   string
	Paydesk string
	Health  string // of the relay
	Console string
	Secret  string // of the payment provider's webhooks
}

// Stage is a service that runs, or did.
type Stage struct {
	Settings
	Processes map[string]*Process

	folder string
}

// New prepares a stage in a folder, which is created.
func New(folder string, settings Settings) (*Stage, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	s := &Stage{Settings: settings, Processes: make(map[string]*Process), folder: folder}
	return s, s.save()
}

// Open finds the stage that [New] has prepared in a folder.
func Open(folder string) (*Stage, error) {
	text, err := os.ReadFile(filepath.Join(folder, "stage.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the demo was not started yet: make demo (%w)", err)
	}
	if err != nil {
		return nil, err
	}
	s := &Stage{folder: folder}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s/stage.json: %w", folder, err)
	}
	return s, nil
}

// save writes the stage into its folder, for its user only: it has the passwords of servers.
func (s *Stage) save() error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	part := filepath.Join(s.folder, "stage.json.part")
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(s.folder, "stage.json"))
}

// Log is the file with what a process has said.
func (s *Stage) Log(name string) string { return filepath.Join(s.folder, name+".log") }
