package record

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ReceiptWriter writes receipts of one destination from a separate process, beside the Writer of
// the run.
type ReceiptWriter struct {
	file        *file
	destination string
}

// AppendReceipts starts a new part of a destination's receipts. A restarted process starts another
// one; the parts are read in the order in which they were started.
func AppendReceipts(dir, destination string) (*ReceiptWriter, error) {
	for part := 2; ; part++ {
		f, err := newFile(filepath.Join(dir, receiptsFile(destination, part)))
		if err == nil {
			return &ReceiptWriter{f, destination}, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
}

// Receipt appends a receipt. Flush it before responding to the sender; otherwise the death of this
// process looks like a loss.
func (w *ReceiptWriter) Receipt(r Receipt) error {
	if cmp.Or(r.Destination, w.destination) != w.destination {
		return fmt.Errorf("a receipt of %s among those of %s", r.Destination, w.destination)
	}
	return w.file.put(r.put)
}

// Flush hands everything written to the operating system.
func (w *ReceiptWriter) Flush() error { return w.file.flush() }

// Close ends and syncs this part. The Close of the run's Writer computes the hash, and must come
// later.
func (w *ReceiptWriter) Close() error { return w.file.close() }

func receiptsFile(destination string, part int) string {
	if part == 1 {
		return "receipts-" + destination + ".gz"
	}
	return fmt.Sprintf("receipts-%s.%d.gz", destination, part)
}
