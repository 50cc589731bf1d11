package cli

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/postrider/postrider/cmd/postrider/internal/top"
)

// terminal is the terminal of "postrider top", which take puts into raw mode.
type terminal struct {
	in, out *os.File
	before  *term.State
	once    sync.Once
}

// openTerminal checks that there is a terminal. It does not change it yet.
func (a *app) openTerminal() (*terminal, error) {
	in, isIn := a.in.(*os.File)
	out, isOut := a.out.(*os.File)
	if !isIn || !isOut || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil, hintedError{usagef("top needs a terminal"), "without one: " + a.next("status") + ", or " + a.next("top --once")}
	}
	return &terminal{in: in, out: out}, nil
}

// Control sequences for the alternate screen, the cursor, and line wrapping.
const (
	takeScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	giveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// take switches to the alternate screen and to raw mode, in which keys arrive one by one.
func (t *terminal) take() (err error) {
	if t.before, err = term.MakeRaw(int(t.in.Fd())); err != nil {
		return err
	}
	return t.write(takeScreen)
}

// restore undoes take. It may be called more than once. It ignores errors, which it could not
// report.
func (t *terminal) restore() {
	t.once.Do(func() {
		_ = t.write(giveScreen)
		_ = term.Restore(int(t.in.Fd()), t.before)
	})
}

// draw replaces the content of the screen in one write, so that it does not flicker.
func (t *terminal) draw(frame func(width, height int) []string) error {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil {
		return err
	}
	// Erase each line before it is written. Erasing after a line as wide as the screen would remove
	// its last character.
	const erase = "\x1b[2K"
	return t.write("\x1b[H" + erase + strings.Join(frame(width, height), "\r\n"+erase))
}

func (t *terminal) write(text string) error {
	_, err := t.out.WriteString(text)
	return err
}

// topScreen runs "postrider top" interactively.
type topScreen struct {
	*terminal
	state    *top.State
	interval time.Duration
	look     lookFunc
	explain  func(error) string
}

// seen is the result of a query.
type seen struct {
	top.Snapshot
	err  error
	took time.Duration
}

// escapeDelay is the maximum delay between the bytes of one key.
const escapeDelay = 50 * time.Millisecond

// run shows the state until the user quits or ctx ends. It restores the terminal on every way out,
// including a panic.
func (s *topScreen) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.take(); err != nil {
		return err
	}
	defer s.restore()
	resized := make(chan os.Signal, 1)
	notifyResize(resized)
	defer signal.Stop(resized)

	typed, looks := make(chan []byte), make(chan seen, 1)
	go s.read(ctx, typed)
	timer := time.NewTimer(s.interval)
	defer timer.Stop()
	var (
		looking bool
		sent    []byte           // the bytes of an incomplete key
		escape  <-chan time.Time // fires when they are the key esc
		lastAt  = time.Now()     // time of the last answer
	)
	for {
		now := s.state.At.Add(time.Since(lastAt))
		if err := s.draw(func(width, height int) []string { return top.Frame(s.state, width, height, now) }); err != nil {
			return err
		}
		var keys []top.Key
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-resized:
		case <-escape:
			keys, sent, escape = []top.Key{top.Escape}, nil, nil
		case more, open := <-typed:
			if !open { // the terminal is closed
				return nil
			}
			keys, sent = top.Keys(append(sent, more...))
			if escape = nil; len(sent) > 0 {
				escape = time.After(escapeDelay)
			}
		case <-timer.C:
			if !looking && (!s.state.Held || s.outdated()) {
				looking = true
				go s.lookNow(ctx, s.state.Wanted(), looks)
			}
		case l := <-looks:
			looking = false
			if l.err != nil {
				s.state.Err = s.explain(l.err)
			} else {
				s.state.Add(l.Snapshot)
				lastAt = time.Now()
			}
			// Query a slow database less often.
			timer.Reset(max(s.interval, l.took))
			if l.err == nil && s.outdated() {
				timer.Reset(0)
			}
		}
		held := s.state.Held
		for _, k := range keys {
			if s.state.Press(k) {
				return nil
			}
		}
		if !looking && len(keys) > 0 && (s.outdated() || held && !s.state.Held) {
			timer.Reset(0)
		}
	}
}

// outdated reports whether the last snapshot has the details of another feed than the selected one.
func (s *topScreen) outdated() bool { return s.state.Inside != s.state.Wanted() }

func (s *topScreen) lookNow(ctx context.Context, inside string, looks chan<- seen) {
	defer func() {
		if p := recover(); p != nil {
			s.restore()
			panic(p)
		}
	}()
	start := time.Now()
	snapshot, err := s.look(ctx, inside)
	looks <- seen{snapshot, err, time.Since(start)}
}

// read passes on input of the terminal. It may outlive the screen, blocked until the next key.
func (s *topScreen) read(ctx context.Context, typed chan<- []byte) {
	defer s.restore()
	defer close(typed)
	for {
		buf := make([]byte, 64)
		n, err := s.in.Read(buf)
		if err != nil {
			return
		}
		select {
		case typed <- buf[:n]:
		case <-ctx.Done():
			return
		}
	}
}
