package oracle

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// FuzzCheck checks that the oracle terminates without a panic on any files, and never reports OK
// without data.
func FuzzCheck(f *testing.F) {
	dir := newHistory(5, 20).write(f)
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		if filepath.Ext(name) != ".gz" {
			return text[:min(2000, len(text))]
		}
		unzip, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			f.Fatal(err)
		}
		if text, err = io.ReadAll(unzip); err != nil {
			f.Fatal(err)
		}
		return text
	}
	f.Add([]byte("{}"), read("timeline.jsonl"), read("samples.jsonl"), read("intents.gz"), read("receipts-kafka.gz"), read("effects.gz"), read("leases.gz")[:500])
	f.Add([]byte("{}"), []byte{}, []byte{}, read("intents.gz"), []byte{}, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, run, timeline, samples, intents, receipts, effects, leases []byte) {
		r, err := record.OpenFS(fstest.MapFS{
			"run.json": {Data: run}, "timeline.jsonl": {Data: timeline}, "samples.jsonl": {Data: samples}, "intents.gz": zip(intents),
			"receipts-kafka.gz": zip(receipts), "effects.gz": zip(effects), "leases.gz": zip(leases),
		})
		if err != nil {
			return
		}
		v, err := CheckReader(r)
		if err != nil {
			return
		}
		for id, text := range map[string][]byte{"I2": intents, "I8": leases, "I9": samples, "I10": samples, "I12": samples} {
			if len(text) == 0 && v.Finding(id).State != NotChecked {
				t.Errorf("%s is %s", id, v.Finding(id).State)
			}
		}
	})
}

func zip(text []byte) *fstest.MapFile {
	var zipped bytes.Buffer
	w, _ := gzip.NewWriterLevel(&zipped, gzip.NoCompression)
	_, _ = w.Write(text) // into memory
	_ = w.Close()
	return &fstest.MapFile{Data: zipped.Bytes()}
}
