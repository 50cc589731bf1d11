package record

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
)

// longest is the maximum length of a line: a sample lists every process.
const longest = 1 << 16

// textLines yields the records of compressed files, one after the other.
func textLines[T any](r *Reader, names []string, take func(*fields) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		cut := error(nil)
		for _, name := range names {
			known := fields{known: map[string]string{}}
			err := eachLine(r.dir, name, true, func(text []byte) (bool, error) {
				var record T
				if err := known.read(text, func(f *fields) { record = take(f) }); err != nil {
					return false, err
				}
				return yield(record, nil), nil
			})
			switch {
			case errors.Is(err, errStopped):
				return
			case errors.Is(err, ErrTruncated): // another process has written the next part, which is complete
				cut = err
			case err != nil:
				yield(*new(T), err)
				return
			}
		}
		if cut != nil {
			yield(*new(T), cut)
		}
	}
}

// jsonLines yields the values of a file with one JSON value per line.
func jsonLines[T any](r *Reader, name string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := eachLine(r.dir, name, false, func(text []byte) (bool, error) {
			var record T
			if err := json.Unmarshal(text, &record); err != nil {
				return false, err
			}
			return yield(record, nil), nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(*new(T), err)
		}
	}
}

var errStopped = errors.New("stopped")

// eachLine calls a function for every complete line of a file, until it returns false. Data after
// the last line break are an incomplete write.
func eachLine(dir fs.FS, name string, compressed bool, each func([]byte) (more bool, err error)) error {
	f, err := dir.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	source := io.Reader(bufio.NewReaderSize(f, 1<<16))
	if compressed {
		unzipped, err := gzip.NewReader(source)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s: %w", name, ErrTruncated)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		source = unzipped
	}
	lines := bufio.NewReaderSize(source, longest)
	for n := 1; ; n++ {
		text, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(text) == 0:
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%s: line %d: %w", name, n, ErrTruncated)
		case err != nil:
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		more, err := each(bytes.TrimSuffix(text, []byte{'\n'}))
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		if !more {
			return errStopped
		}
	}
}
