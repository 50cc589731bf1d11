package record

import (
	"bytes"
	"compress/gzip"
	"reflect"
	"testing"
	"testing/fstest"
)

// FuzzLines checks that reading any line fails, or yields a record that is written as the same
// line.
func FuzzLines(f *testing.F) {
	for _, form := range []func(*line){intent.put, receipt.put, effect.put, dead.put, foreign.put, operation.put, lease.put} {
		var l line
		form(&l)
		f.Add(l.text)
	}
	f.Add([]byte("\t\t\t"))
	f.Add([]byte("-1\t+2\tk\t00\ti\tF\t1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		again(t, text, (*Intent).take, (*Intent).put)
		again(t, text, (*Receipt).take, (*Receipt).put)
		again(t, text, (*Effect).take, (*Effect).put)
		again(t, text, (*Dead).take, (*Dead).put)
		again(t, text, (*Foreign).take, (*Foreign).put)
		again(t, text, (*Operation).take, (*Operation).put)
		again(t, text, (*Lease).take, (*Lease).put)
	})
}

func again[T any](t *testing.T, text []byte, take func(*T, *fields), put func(*T, *line)) {
	var first, second T
	known := fields{known: map[string]string{}}
	if known.read(text, func(f *fields) { take(&first, f) }) != nil {
		return
	}
	var l line
	put(&first, &l)
	if l.err != nil { // a line break cannot be part of a line
		return
	}
	if err := known.read(l.text, func(f *fields) { take(&second, f) }); err != nil {
		t.Fatalf("%q was read and written as %q: %v", text, l.text, err)
	}
	if !reflect.DeepEqual(first, second) {
		t.Fatalf("%q was read as %+v, written, and read as %+v", text, first, second)
	}
}

// FuzzFiles checks that readers of any files terminate without a panic, with an error at most once
// and last.
func FuzzFiles(f *testing.F) {
	var l line
	intent.put(&l)
	f.Add(append(l.text, '\n'), []byte(`{"phase":"begin"}`+"\n"), []byte(`{"seed":1}`), 0)
	f.Add(append(l.text, '\n'), []byte(`{"phase":"be`), []byte(`{}`), 7)
	f.Fuzz(func(t *testing.T, text, lines, run []byte, cut int) {
		var zipped bytes.Buffer
		w, _ := gzip.NewWriterLevel(&zipped, gzip.NoCompression)
		_, _ = w.Write(text) // Close reports the error
		must(t, w.Close())
		packed := zipped.Bytes()
		if cut > 0 {
			packed = packed[:max(0, len(packed)-cut)]
		}
		files := fstest.MapFS{}
		for name, content := range map[string][]byte{
			runFile: run, timelineFile: lines, samplesFile: lines, intentsFile: packed, effectsFile: packed, deadFile: text,
			leasesFile: packed, operationsFile: packed, "receipts-x.gz": packed, "receipts-x.3.gz": packed,
		} {
			files[name] = &fstest.MapFile{Data: content}
		}
		r, err := OpenFS(files)
		if err != nil {
			return
		}
		_, _ = r.Verify()
		drain(t, r.Timeline())
		drain(t, r.Samples())
		drain(t, r.Intents())
		drain(t, r.Receipts("x"))
		drain(t, r.Effects())
		drain(t, r.Dead())
		drain(t, r.Leases())
		drain(t, r.Operations())
	})
}

func drain[T any](t *testing.T, seq func(func(T, error) bool)) {
	failed := false
	for _, err := range seq {
		if failed {
			t.Fatal("something comes after an error")
		}
		failed = err != nil
	}
}
