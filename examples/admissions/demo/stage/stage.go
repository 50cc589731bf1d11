// Package stage runs the admissions service as in production, with one process each for the relay,
// the pages, the workers and the payment provider, and with a network to the queue that can be cut.
// It stores the running processes in a folder, so that one command can start them, another kill
// some of them, and a third end them.
package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Settings are the addresses and paths of a stage. Addresses are hosts with ports.
type Settings struct {
	Postrider  string // the programs
	Admissions string
	Demo       string
	Config     string // configuration file of the relay

	Database string // addresses of the servers, as URLs
	Queue    string
	SMTP     string
	Maildir  string // where the mail server stores mails

	Prefix  string // prefix of names in the queue, so that several stages can share a server
	Network string // where the relay and the workers connect to the queue
	Pages   string
	Paydesk string
	Health  string // health check of the relay
	Console string
	Secret  string // secret of the payment provider's webhooks
}

// Stage is a service with its processes.
type Stage struct {
	Settings
	Processes map[string]*Process

	folder string
}

// New prepares a stage in a folder, which it creates.
func New(folder string, settings Settings) (*Stage, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	s := &Stage{Settings: settings, Processes: make(map[string]*Process), folder: folder}
	return s, s.save()
}

// Open opens the stage that [New] prepared in a folder.
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

// save writes the stage to its folder, readable by its user only, because it contains passwords of
// servers.
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

// Log returns the path of a process's log file.
func (s *Stage) Log(name string) string { return filepath.Join(s.folder, name+".log") }
