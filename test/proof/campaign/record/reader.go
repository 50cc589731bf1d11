package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ErrTruncated is the last value that an iterator yields if its file ends in the middle of a line
// or of a compressed block.
var ErrTruncated = errors.New("the file was cut short")

// Reader reads the files of a run. Its iterators may be used concurrently, each by one goroutine.
//
// An iterator yields an error at most once, as its last value. A missing file yields nothing: see
// Has.
type Reader struct {
	Run Run // zero if the run was cut short before run.json was written

	dir   fs.FS
	names map[string]bool
}

// Open opens the files in a directory. They need not be complete.
func Open(dir string) (*Reader, error) {
	r, err := OpenFS(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return r, nil
}

// OpenFS is Open for files elsewhere, for example in an archive.
func OpenFS(dir fs.FS) (*Reader, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	r := &Reader{dir: dir, names: map[string]bool{}}
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			r.names[entry.Name()] = true
		}
	}
	if !r.names[runFile] && !r.names[timelineFile] {
		return nil, errors.New("there is no run")
	}
	if !r.names[runFile] {
		return r, nil
	}
	text, err := fs.ReadFile(dir, runFile)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &r.Run); err != nil {
		return nil, fmt.Errorf("%s: %w", runFile, err)
	}
	return r, nil
}

// Has reports whether something was collected: "intents", "effects", "dead", "operations",
// "leases", "foreign", or "receipts-" and a destination.
func (r *Reader) Has(name string) bool { return r.names[name+".gz"] || len(r.parts(name)) > 0 }

// Destinations returns the destinations that have receipts, sorted by name.
func (r *Reader) Destinations() []string {
	found := map[string]bool{}
	for name := range r.names {
		if destination, _, ok := receiptsOf(name); ok {
			found[destination] = true
		}
	}
	return sorted(found)
}

// Verify compares the files with the hashes in run.json and returns the names of those that differ,
// are missing or were added.
func (r *Reader) Verify() (changed []string, err error) {
	if r.Run.Hashes == nil {
		return nil, nil
	}
	now, err := hashes(r.dir)
	if err != nil {
		return nil, err
	}
	differs := map[string]bool{}
	for name, sum := range r.Run.Hashes {
		differs[name] = now[name] != sum
	}
	for name := range now {
		if _, known := r.Run.Hashes[name]; !known {
			differs[name] = strings.HasSuffix(name, ".gz")
		}
	}
	for name := range differs {
		if differs[name] {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed, nil
}

// Timeline yields the events of faults.
func (r *Reader) Timeline() iter.Seq2[Event, error] { return jsonLines[Event](r, timelineFile) }

// Samples yields the samples.
func (r *Reader) Samples() iter.Seq2[Sample, error] { return jsonLines[Sample](r, samplesFile) }

// Intents yields the committed messages, each key in the order of its numbers.
func (r *Reader) Intents() iter.Seq2[Intent, error] {
	return textLines(r, []string{intentsFile}, func(f *fields) (i Intent) { i.take(f); return i })
}

// Receipts yields the entries of a destination, in its order within each partition.
func (r *Reader) Receipts(destination string) iter.Seq2[Receipt, error] {
	return textLines(r, r.parts("receipts-"+destination), func(f *fields) (x Receipt) {
		x.take(f)
		x.Destination = destination
		return x
	})
}

// Effects yields what consumers did, in the order of their numbers.
func (r *Reader) Effects() iter.Seq2[Effect, error] {
	return textLines(r, []string{effectsFile}, func(f *fields) (e Effect) { e.take(f); return e })
}

// Dead yields the messages that were not delivered.
func (r *Reader) Dead() iter.Seq2[Dead, error] {
	return textLines(r, []string{deadFile}, func(f *fields) (d Dead) { d.take(f); return d })
}

// Foreign yields the messages of other senders.
func (r *Reader) Foreign() iter.Seq2[Foreign, error] {
	return textLines(r, []string{foreignFile}, func(f *fields) (x Foreign) { x.take(f); return x })
}

// Operations yields the calls that had to take effect exactly once.
func (r *Reader) Operations() iter.Seq2[Operation, error] {
	return textLines(r, []string{operationsFile}, func(f *fields) (o Operation) { o.take(f); return o })
}

// Leases yields rows of the ledger in the order in which they were seen.
func (r *Reader) Leases() iter.Seq2[Lease, error] {
	return textLines(r, []string{leasesFile}, func(f *fields) (l Lease) { l.take(f); return l })
}

// parts returns the files of receipts of one destination, in the order in which they were started.
func (r *Reader) parts(name string) []string {
	type part struct {
		name string
		n    int
	}
	var parts []part
	for file := range r.names {
		if destination, n, ok := receiptsOf(file); ok && "receipts-"+destination == name {
			parts = append(parts, part{file, n})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return a.n - b.n })
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

func receiptsOf(file string) (destination string, part int, ok bool) {
	name, receipts := strings.CutPrefix(file, "receipts-")
	name, zipped := strings.CutSuffix(name, ".gz")
	if !receipts || !zipped {
		return "", 0, false
	}
	if destination, number, cut := strings.Cut(name, "."); cut {
		part, err := strconv.Atoi(number)
		return destination, part, err == nil
	}
	return name, 1, true
}

func sorted(set map[string]bool) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
