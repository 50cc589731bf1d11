package main

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// screen shows the progress of a run: lines for events and, on a terminal, a status line at the
// bottom. Without a terminal, it prints a line every half minute instead of the status line.
type screen struct {
	out      *os.File
	terminal bool

	mu      sync.Mutex
	last    string // the status line
	began   time.Time
	length  time.Duration
	planned int
	faults  int
	open    map[int]string // kinds of the current faults
	seen    int64          // receipts
	seenAt  time.Time
	said    time.Time
}

func newScreen(out *os.File) *screen {
	s := &screen{out: out, open: map[int]string{}}
	if info, err := out.Stat(); err == nil {
		s.terminal = info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	return s
}

// logger returns a logger that writes above the status line.
func (s *screen) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 {
			a.Value = slog.StringValue(a.Value.Time().Format(time.TimeOnly))
		}
		return a
	}}))
}

// Write writes a line above the status line.
func (s *screen) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != "" {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
	n, err := s.out.Write(line)
	if s.last != "" {
		fmt.Fprint(s.out, s.last)
	}
	return n, err
}

// status changes the status line.
func (s *screen) status(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show(text)
}

func (s *screen) show(text string) {
	if s.terminal {
		fmt.Fprint(s.out, "\r\x1b[K", text)
		s.last = text
	} else if time.Since(s.said) > 30*time.Second {
		fmt.Fprintln(s.out, text)
		s.said = time.Now()
	}
}

// close leaves the status line as it is.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != "" {
		fmt.Fprintln(s.out)
		s.last = ""
	}
}

// begin records the length of the run and the number of faults.
func (s *screen) begin(at time.Time, length time.Duration, faults int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.length, s.planned = at, length, faults
}

func (s *screen) fault(number int, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults++
	s.open[number] = kind
}

func (s *screen) healed(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, number)
}

// sample redraws the status line.
func (s *screen) sample(sample record.Sample, receipts map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		return
	}
	total := int64(0)
	for _, n := range receipts {
		total += n
	}
	speed := float64(total-s.seen) / sample.At.Sub(s.seenAt).Seconds()
	s.seen, s.seenAt = total, sample.At
	passed := min(time.Since(s.began), s.length)
	const width = 20
	full := int(width * passed / s.length)
	backlog := "database away"
	if b := sample.Backlog; b != nil {
		backlog = fmt.Sprintf("backlog %d, oldest %.1f s", b.Messages, b.OldestSeconds)
	}
	s.show(fmt.Sprintf("%s%s %s of %s, faults %d/%d, %.0f/s, %s, now: %s", strings.Repeat("█", full), strings.Repeat("░", width-full),
		passed.Round(time.Second), s.length, s.faults, s.planned, speed, backlog, strings.Join(slices.Sorted(maps.Values(s.open)), " ")))
}
