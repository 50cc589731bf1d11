package trial

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/postrider/postrider/test/proof/peers/peer"
)

// relay is a peer's running process with all its children.
type relay struct {
	cmd   *exec.Cmd
	log   *os.File
	ended chan error
}

// launch starts a relay in its own process group. Its output goes to a file.
func launch(p peer.Peer, j peer.Job, programs peer.Programs) (*relay, error) {
	cmd, err := p.Relay(j, programs)
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp(programs.Scratch, filepath.Base(p.Name())+"-*.log")
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	r := &relay{cmd, log, make(chan error, 1)}
	go func() { r.ended <- cmd.Wait() }()
	return r, nil
}

// failed returns why a relay has exited by itself, or nil while it runs.
func (r *relay) failed() error {
	select {
	case err := <-r.ended:
		r.ended <- err
		return fmt.Errorf("trial: the relay has ended by itself (%v)\n%s", err, r.tail()) //nolint:errorlint // it may be nil
	default:
		return nil
	}
}

// tail returns the end of the relay's output.
func (r *relay) tail() string {
	text, _ := os.ReadFile(r.log.Name())
	return string(text[max(0, len(text)-2000):])
}

// stop stops the relay, cleanly if possible, and removes its output.
func (r *relay) stop() {
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-r.ended:
	case <-time.After(10 * time.Second):
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
		<-r.ended
	}
	_ = r.log.Close()
	_ = os.Remove(r.log.Name())
}
