package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Names of the files, except those of receipts.
const (
	timelineFile   = "timeline.jsonl"
	samplesFile    = "samples.jsonl"
	intentsFile    = "intents.gz"
	effectsFile    = "effects.gz"
	deadFile       = "dead.gz"
	leasesFile     = "leases.gz"
	foreignFile    = "foreign.gz"
	operationsFile = "operations.gz"
)

// VerdictFile is the file of the oracle's verdict. It is the only file that is not hashed, because
// a newer oracle may rewrite it.
const VerdictFile = "verdict.json"

// Writer writes the files of one run. It is safe for concurrent use.
//
// A file is created with its first record. A missing file therefore means that its data were not
// collected, which differs from an empty file: see Collect.
type Writer struct {
	dir string

	mu       sync.Mutex
	run      Run
	timeline *os.File
	samples  *os.File
	files    map[string]*file
}

// Create starts a run in a directory, which is created if necessary and must not contain another
// run.
func Create(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, files: map[string]*file{}}
	var err error
	if w.timeline, err = os.OpenFile(filepath.Join(dir, timelineFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		return nil, fmt.Errorf("%s holds a run already: %w", dir, err)
	}
	if w.samples, err = os.OpenFile(filepath.Join(dir, samplesFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		return nil, errors.Join(err, w.timeline.Close())
	}
	return w, nil
}

// Run writes run.json. Call it when the run begins, and again with its end and counts before Close.
func (w *Writer) Run(run Run) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run = run
	return WriteJSON(filepath.Join(w.dir, runFile), run)
}

// Event appends to the timeline, and flushes it to the operating system.
func (w *Writer) Event(e Event) error { return w.appendJSON(w.timeline, e) }

// Sample appends a sample and flushes all files, so that a run that is cut short lacks little.
func (w *Writer) Sample(s Sample) error {
	return errors.Join(w.appendJSON(w.samples, s), w.Flush())
}

// Intent appends a committed message.
func (w *Writer) Intent(i Intent) error { return w.put(intentsFile, i.put) }

// Receipt appends to the receipts of its destination, in the order of each partition.
func (w *Writer) Receipt(r Receipt) error { return w.put(receiptsFile(r.Destination, 1), r.put) }

// Effect appends an effect, in the order of their numbers.
func (w *Writer) Effect(e Effect) error { return w.put(effectsFile, e.put) }

// Dead appends a message that was not delivered.
func (w *Writer) Dead(d Dead) error { return w.put(deadFile, d.put) }

// Foreign appends a message of another sender.
func (w *Writer) Foreign(f Foreign) error { return w.put(foreignFile, f.put) }

// Operation appends a call and its outcome.
func (w *Writer) Operation(o Operation) error { return w.put(operationsFile, o.put) }

// Lease appends a row of the ledger. Append the same row again only if it has changed.
func (w *Writer) Lease(l Lease) error { return w.put(leasesFile, l.put) }

// Collect records what was collected in this run, so that an empty file means that there was
// nothing: no dead letters, for example. Name is "intents", "effects", "dead", "operations",
// "leases", "foreign", or "receipts-" and a destination.
func (w *Writer) Collect(names ...string) error {
	for _, name := range names {
		if _, err := w.file(name + ".gz"); err != nil {
			return err
		}
	}
	return nil
}

// Flush hands everything written to the operating system.
func (w *Writer) Flush() error {
	w.mu.Lock()
	files := make([]*file, 0, len(w.files))
	for _, f := range w.files {
		files = append(files, f)
	}
	w.mu.Unlock()
	var err error
	for _, f := range files {
		err = errors.Join(err, f.flush())
	}
	return err
}

// Close closes and syncs all files, and writes their hashes, and those of all other files in the
// directory, to run.json.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := errors.Join(w.timeline.Sync(), w.timeline.Close(), w.samples.Sync(), w.samples.Close())
	for _, f := range w.files {
		err = errors.Join(err, f.close())
	}
	if err != nil {
		return err
	}
	if w.run.Hashes, err = hashes(os.DirFS(w.dir)); err != nil {
		return err
	}
	return WriteJSON(filepath.Join(w.dir, runFile), w.run)
}

func (w *Writer) appendJSON(to *os.File, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = to.Write(append(text, '\n'))
	return err
}

func (w *Writer) put(name string, form func(*line)) error {
	f, err := w.file(name)
	if err != nil {
		return err
	}
	if err := f.put(form); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (w *Writer) file(name string) (*file, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f, ok := w.files[name]; ok {
		return f, nil
	}
	f, err := newFile(filepath.Join(w.dir, name))
	if err == nil {
		w.files[name] = f
	}
	return f, err
}
