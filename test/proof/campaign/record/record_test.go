package record

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// collect returns everything that an iterator yields, and the final error.
func collect[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for record, failed := range seq {
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		all = append(all, record)
	}
	return all, err
}

func equal[T any](t *testing.T, seq iter.Seq2[T, error], want ...T) {
	t.Helper()
	got, err := collect(seq)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}

var (
	now = time.UnixMilli(1_770_000_000_123)
	hat = Message{Destination: "kafka", Key: "hat", Seq: 3, ID: "0194-ab"}

	intent    = Intent{Message: hat, Sum: 0xabc, Poison: true, Unnumbered: true, Unordered: true, Tenant: "acme", At: now}
	receipt   = Receipt{Message: hat, Partition: 2, Offset: 1 << 61, Sum: 1<<64 - 1, At: now}
	effect    = Effect{Message: hat, N: 9, Consumer: "billing"}
	dead      = Dead{ID: "0194-ab", State: StateDead}
	foreign   = Foreign{N: 3, Destination: "kafka", Form: "bare", Ends: 2}
	operation = Operation{Kind: "pay", Client: "c", N: 4, Count: 2, Acked: true}
	lease     = Lease{Feed: "kafka", Shard: 3, N: 17, Released: true, At: now, Until: now.Add(time.Second)}
	event     = Event{At: now.UTC(), Fault: 1, Kind: "relay-kill", Target: "relay2", Phase: Begin, Touches: []string{Relay, "kafka"}, Zombie: true}
	sample    = Sample{At: now.UTC(), Processes: []Process{{Name: "relay1", Role: "relay", PID: 7, RSS: 9}}, Backlog: &Backlog{Messages: 1}}
)

func write(t *testing.T, dir string) {
	t.Helper()
	w, err := Create(dir)
	must(t, err)
	must(t, w.Run(Run{ID: "r", Seed: 5}))
	must(t, errors.Join(w.Event(event), w.Sample(sample), w.Intent(intent), w.Receipt(receipt), w.Effect(effect), w.Dead(dead),
		w.Foreign(foreign), w.Operation(operation), w.Lease(lease), w.Collect("receipts-nats")))
	must(t, w.Run(Run{ID: "r", Seed: 5, End: now.UTC()}))
	must(t, w.Close())
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "run")
	write(t, dir)
	r, err := Open(dir)
	must(t, err)
	equal(t, r.Timeline(), event)
	equal(t, r.Samples(), sample)
	equal(t, r.Intents(), intent)
	equal(t, r.Receipts("kafka"), receipt)
	equal(t, r.Receipts("nats"))
	equal(t, r.Effects(), effect)
	equal(t, r.Dead(), dead)
	equal(t, r.Foreign(), foreign)
	equal(t, r.Operations(), operation)
	equal(t, r.Leases(), lease)
	if r.Run.Seed != 5 || r.Run.End.IsZero() || len(r.Run.Hashes) != 10 {
		t.Errorf("%+v", r.Run)
	}
	if !reflect.DeepEqual(r.Destinations(), []string{"kafka", "nats"}) || !r.Has("receipts-nats") || r.Has("receipts-http") || !r.Has("dead") {
		t.Errorf("destinations %v", r.Destinations())
	}
	for range r.Intents() { // stopping early is not an error
		break
	}
	if _, err := Create(dir); err == nil {
		t.Error("a second run was written over the first")
	}
}

func TestChangedFilesAreNoticed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir)
	r, err := Open(dir)
	must(t, err)
	if changed, err := r.Verify(); err != nil || len(changed) > 0 {
		t.Fatalf("%v %v", changed, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, VerdictFile), []byte("{}"), 0o600))
	must(t, os.Remove(filepath.Join(dir, "dead.gz")))
	must(t, os.WriteFile(filepath.Join(dir, "receipts-http.gz"), nil, 0o600))
	f, err := os.OpenFile(filepath.Join(dir, "timeline.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("\n")
	must(t, errors.Join(err, f.Close()))
	changed, err := r.Verify()
	if want := "dead.gz receipts-http.gz timeline.jsonl"; err != nil || strings.Join(changed, " ") != want {
		t.Errorf("%v %v, want %s", changed, err, want)
	}
}

// Several goroutines and processes write concurrently.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	must(t, err)
	const each = 500
	var writers sync.WaitGroup
	for _, destination := range []string{"kafka", "kafka", "nats", "redis"} {
		writers.Go(func() {
			for i := range each {
				message := Message{Destination: destination, Key: "k", Seq: int64(i)}
				if err := errors.Join(w.Receipt(Receipt{Message: message}), w.Lease(lease)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Go(func() {
		for range each / 10 {
			if err := errors.Join(w.Event(event), w.Sample(sample)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 3 {
		writers.Go(func() {
			part, err := AppendReceipts(dir, "http")
			if err != nil {
				t.Error(err)
				return
			}
			for i := range each {
				if err := errors.Join(part.Receipt(Receipt{Message: Message{Seq: int64(i)}}), part.Flush()); err != nil {
					t.Error(err)
				}
			}
			if part.Receipt(receipt) == nil {
				t.Error("a receipt of kafka was written as one of http")
			}
			if err := part.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	must(t, w.Close())
	r, err := Open(dir)
	must(t, err)
	for destination, want := range map[string]int{"kafka": 2 * each, "nats": each, "redis": each, "http": 3 * each} {
		if got, err := collect(r.Receipts(destination)); err != nil || len(got) != want {
			t.Errorf("%s: %d receipts, want %d, %v", destination, len(got), want, err)
		}
	}
	if got, err := collect(r.Leases()); err != nil || len(got) != 4*each {
		t.Errorf("%d leases, %v", len(got), err)
	}
	if got, err := collect(r.Samples()); err != nil || len(got) != each/10 {
		t.Errorf("%d samples, %v", len(got), err)
	}
}

// A run that was cut short at any byte is read as far as possible.
func TestTruncatedFiles(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir)
	must(t, err)
	const count = 20
	for i := range count {
		must(t, w.Intent(Intent{Message: Message{Destination: "d", Key: "k", Seq: int64(i + 1), ID: fmt.Sprint(i * 7919)}}))
		must(t, w.Event(event))
		if i%5 == 4 {
			must(t, w.Flush())
		}
	}
	must(t, w.Close())
	r, err := Open(dir)
	must(t, err)
	for name, read := range map[string]func() (int, error){
		"intents.gz":     func() (int, error) { all, err := collect(r.Intents()); return len(all), err },
		"timeline.jsonl": func() (int, error) { all, err := collect(r.Timeline()); return len(all), err },
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		before := count
		for size := info.Size() - 1; size >= 0; size-- {
			must(t, os.Truncate(filepath.Join(dir, name), size))
			got, err := read()
			if err != nil && !errors.Is(err, ErrTruncated) {
				t.Fatalf("%s, %d bytes: %v", name, size, err)
			}
			if got > before || got < before-5 {
				t.Fatalf("%s: %d records in %d bytes, and %d with one byte more", name, got, size, before)
			}
			before = got
		}
	}
}

// A killed process leaves a part without an end; the next part is read nevertheless.
func TestPartsOfKilledProcesses(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "timeline.jsonl"), nil, 0o600))
	for i := range 12 {
		part, err := AppendReceipts(dir, "http")
		must(t, err)
		must(t, errors.Join(part.Receipt(Receipt{Message: Message{Key: "k", Seq: int64(i)}, Offset: int64(i)}), part.Flush()))
	}
	r, err := Open(dir)
	must(t, err)
	got, err := collect(r.Receipts("http"))
	if !errors.Is(err, ErrTruncated) || len(got) != 12 {
		t.Fatalf("%d receipts, %v", len(got), err)
	}
	for i, x := range got {
		if x.Seq != int64(i) {
			t.Fatalf("place %d has %d", i, x.Seq)
		}
	}
}

func TestFieldsThatWouldBreakALine(t *testing.T) {
	w, err := Create(t.TempDir())
	must(t, err)
	for _, key := range []string{"a\tb", "a\nb", "\r"} {
		if err := w.Intent(Intent{Message: Message{Key: key}}); err == nil {
			t.Errorf("%q was written", key)
		}
	}
	must(t, w.Close())
}

func TestSum(t *testing.T) {
	sums := map[uint64]string{}
	for name, sum := range map[string]uint64{
		"empty":         Sum(nil, nil),
		"a":             Sum([]byte("a"), nil),
		"header":        Sum([]byte("a"), map[string]string{"b": "c"}),
		"moved":         Sum([]byte("a"), map[string]string{"bc": ""}),
		"in payload":    Sum([]byte("abc"), nil),
		"two headers":   Sum([]byte("a"), map[string]string{"b": "c", "d": "e"}),
		"other payload": Sum([]byte("b"), map[string]string{"b": "c", "d": "e"}),
	} {
		if other, ok := sums[sum]; ok {
			t.Errorf("%s and %s have the same sum", name, other)
		}
		sums[sum] = name
	}
	for range 100 {
		if Sum(nil, map[string]string{"b": "c", "d": "e", "f": "g"}) != Sum(nil, map[string]string{"f": "g", "d": "e", "b": "c"}) {
			t.Fatal("the order of headers counts")
		}
	}
}
