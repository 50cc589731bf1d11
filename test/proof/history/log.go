package history

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/postrider/postrider"
)

// Log is a publisher that appends each delivery to a file. Several processes may append to one
// file: each call is one write at its end, so the order of lines is the order of deliveries, and
// what a killed process has confirmed is there. The kernel may cut off the write of a process that
// is killed during it: therefore a write begins with a line break, and a line counts only with its
// end.
type Log struct {
	file    *os.File
	process string
	// Before is called before each write, to delay or fail it. It may be nil.
	Before func(ctx context.Context, msgs []postrider.Message) error
}

// Delivery is one line of a [Log].
type Delivery struct {
	ID      postrider.ID
	Key     string
	N       int64
	Process string
}

const lineEnd = " ."

// OpenLog opens a log for appending. Each line records the process.
func OpenLog(path, process string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &Log{file: file, process: process}, err
}

// Publish implements [postrider.Publisher].
func (l *Log) Publish(ctx context.Context, msgs []postrider.Message) []error {
	lines := bytes.NewBufferString("\n")
	for i := range msgs {
		fmt.Fprintf(lines, "%s %s %s%s\n", msgs[i].ID, msgs[i].Payload, l.process, lineEnd)
	}
	var err error
	if l.Before != nil {
		err = l.Before(ctx, msgs)
	}
	if err == nil {
		_, err = l.file.Write(lines.Bytes())
	}
	if err == nil {
		return nil
	}
	errs := make([]error, len(msgs))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// KeepsOrder is true: a call is written completely or not at all.
func (l *Log) KeepsOrder() bool { return true }

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// ReadLog returns the deliveries in order.
func ReadLog(path string) ([]Delivery, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []Delivery
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		d, ok, err := ParseLine(lines.Text())
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, d)
		}
	}
	return all, lines.Err()
}

// ParseLine parses a line. It returns false if the line is empty or the rest of an interrupted
// write.
func ParseLine(line string) (d Delivery, ok bool, err error) {
	if !strings.HasSuffix(line, lineEnd) {
		return d, false, nil
	}
	var id string
	if _, err := fmt.Sscanf(line, "%s %s %d %s", &id, &d.Key, &d.N, &d.Process); err != nil {
		return d, false, fmt.Errorf("delivery %q: %w", line, err)
	}
	d.ID, err = postrider.ParseID(id)
	return d, err == nil, err
}
