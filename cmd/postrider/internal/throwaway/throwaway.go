// Package throwaway runs a PostgreSQL of its own for development: found on the machine or fetched once, on the loopback
// interface only, behind a random password, fast instead of durable, and gone when it is stopped.
package throwaway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	startTimeout = time.Minute      // how long a server may take until it answers
	stopTimeout  = 10 * time.Second // how long a server may take to stop before it is told again
	pollInterval = 20 * time.Millisecond
)

// Options says which server is wanted.
type Options struct {
	Programs string           // folder with initdb and postgres; empty: the newest that is found
	Places   []string         // folders to look in; nil: [Places]
	Port     int              // where it listens
	Fixed    bool             // no other port will do
	Keep     string           // folder that keeps the data for the next time; empty: one that is removed
	Note     func(say string) // tells the user what takes long
}

// Server is a running PostgreSQL.
type Server struct {
	URL     string  // with its password
	Folder  string  // that holds everything
	Port    int     // where it listens
	Program Program // what runs
	Kept    bool    // the folder stays

	place *folder
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

// Start starts a server and waits until it answers. It also clears away what a killed process has left.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if o.Fixed && !Free(ctx, o.Port) { // before anything that takes long
		return nil, takenError(o.Port)
	}
	who, err := serverAccount()
	if err != nil {
		return nil, err
	}
	sweep(ctx)
	place, err := openFolder(ctx, o.Keep, who)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, place.close())
		}
	}()
	program, err := choose(ctx, o, place.major())
	if err != nil {
		return nil, err
	}
	if !place.initialised() {
		if err := place.initialise(ctx, program); err != nil {
			return nil, err
		}
	}
	s := &Server{Folder: place.path, Program: program, Kept: place.kept, place: place}
	return s, s.launch(ctx, o)
}

// launch tries one port after the other.
func (s *Server) launch(ctx context.Context, o Options) error {
	password, err := s.place.password()
	if err != nil {
		return err
	}
	for port := o.Port; ; port++ {
		if !Free(ctx, port) {
			if o.Fixed || port >= o.Port+100 {
				return takenError(port)
			}
			continue
		}
		s.Port = port
		s.URL = fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?sslmode=disable", password, port)
		if err := s.place.write("url", s.URL+"\n"); err != nil {
			return err
		}
		if err := s.start(ctx, port); err != nil {
			return err
		}
		err := s.wait(ctx)
		if err == nil {
			return nil
		}
		s.end()
		if ctx.Err() != nil || Free(ctx, port) { // it was not the port that somebody else has got in between
			return err
		}
	}
}

func takenError(port int) error { return fmt.Errorf("port %d is taken", port) }

// Free reports whether nobody listens at a port of the loopback interface.
func Free(ctx context.Context, port int) bool {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// start runs the server. Commits survive the death of any process, but not that of the machine.
func (s *Server) start(ctx context.Context, port int) error {
	log, err := os.OpenFile(filepath.Join(s.Folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.cmd = s.place.who.command(context.WithoutCancel(ctx), s.Folder, filepath.Join(s.Program.Folder, "postgres"),
		"-D", s.place.data(), "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "full_page_writes=off")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.ended = make(chan struct{})
	started := make(chan error)
	go func() {
		// The kernel stops the server when the thread that started it is gone, so that thread has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.ended)
		defer func() { _ = log.Close() }()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // its log says why
		}
	}()
	return <-started
}

// wait returns when the server answers.
func (s *Server) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		_, err := dataDirectory(ctx, s.URL)
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return s.Failure()
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w", errors.Join(ctx.Err(), err))
		case <-time.After(pollInterval):
		}
	}
}

// Ended is closed when the server has ended, by itself or by [Server.Stop].
func (s *Server) Ended() <-chan struct{} { return s.ended }

// HasEnded reports whether the server has ended.
func (s *Server) HasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Failure says why the server has ended, in its own words.
func (s *Server) Failure() error {
	text, err := os.ReadFile(filepath.Join(s.Folder, "log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return errors.Join(errors.New("PostgreSQL has ended:\n"+strings.Join(lines[max(0, len(lines)-5):], "\n")), err)
}

// end makes the process end, the hard way if need be.
func (s *Server) end() {
	for _, signal := range stopSignals {
		if s.cmd.Process != nil {
			_ = s.cmd.Process.Signal(signal) // it may have ended by itself
		}
		select {
		case <-s.ended:
			return
		case <-time.After(stopTimeout):
		}
	}
}

// Stop stops the server, and removes its folder unless that is to be kept.
func (s *Server) Stop() error {
	s.end()
	return s.place.close()
}
