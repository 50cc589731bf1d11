package record

import (
	"compress/gzip"
	"errors"
	"os"
	"sync"
)

// file is a compressed file that any number of goroutines may write.
type file struct {
	mu   sync.Mutex
	raw  *os.File
	gzip *gzip.Writer
	line line
}

func newFile(path string) (*file, error) {
	raw, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	compressor, err := gzip.NewWriterLevel(raw, gzip.BestSpeed)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return &file{raw: raw, gzip: compressor}, nil
}

func (f *file) put(form func(*line)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.line = line{text: f.line.text[:0]}
	form(&f.line)
	if f.line.err != nil {
		return f.line.err
	}
	f.line.text = append(f.line.text, '\n')
	_, err := f.gzip.Write(f.line.text)
	return err
}

// flush hands everything to the operating system, so that it survives the death of this process.
func (f *file) flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gzip.Flush()
}

func (f *file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.gzip.Close()
	if err == nil {
		err = f.raw.Sync()
	}
	return errors.Join(err, f.raw.Close())
}
