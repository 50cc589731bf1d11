// Package throwaway runs a PostgreSQL server for development: one that is installed or fetched
// once, on the loopback interface only, with a random password, fast instead of durable, and
// removed when it is stopped.
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
	startTimeout = time.Minute      // maximum time until a server responds
	stopTimeout  = 10 * time.Second // maximum time to stop before the next signal
	pollInterval = 20 * time.Millisecond
)

// Options configures the server.
type Options struct {
	Programs string           // folder with initdb and postgres; empty: the newest that is found
	Places   []string         // folders to look in; nil: [Places]
	Port     int              // port to listen on
	Fixed    bool             // do not try other ports
	Keep     string           // folder that keeps the data for the next start; empty: a temporary one
	Note     func(say string) // reports slow operations to the user
}

// Server is a running PostgreSQL.
type Server struct {
	URL     string  // with its password
	Folder  string  // contains all its files
	Port    int     // port that it listens on
	Program Program // the program that runs
	Kept    bool    // the folder is kept

	place *folder
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
}

// Start starts a server and waits until it responds. It also removes what killed processes have
// left behind.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if o.Fixed && !Free(ctx, o.Port) { // check before anything slow
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
		if ctx.Err() != nil || Free(ctx, port) { // the error was not a port taken meanwhile
			return err
		}
	}
}

func takenError(port int) error { return fmt.Errorf("port %d is taken", port) }

// Free reports whether a port of the loopback interface is free.
func Free(ctx context.Context, port int) bool {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// start runs the server. Commits survive a crash of any process, but not of the machine.
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
		// Pdeathsig is sent when the thread that started the server ends, so keep that thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.ended)
		defer func() { _ = log.Close() }()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // the log of the server has the reason
		}
	}()
	return <-started
}

// wait returns when the server responds.
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

// Ended returns a channel that is closed when the server has ended, by itself or by [Server.Stop].
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

// Failure returns the end of the server's log as an error.
func (s *Server) Failure() error {
	text, err := os.ReadFile(filepath.Join(s.Folder, "log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return errors.Join(errors.New("PostgreSQL has ended:\n"+strings.Join(lines[max(0, len(lines)-5):], "\n")), err)
}

// end stops the process, with stronger signals if necessary.
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

// Stop stops the server, and removes its folder unless that is kept.
func (s *Server) Stop() error {
	s.end()
	return s.place.close()
}
