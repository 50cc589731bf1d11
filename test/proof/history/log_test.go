package history_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/test/proof/history"
)

// TestLogCut checks that an interrupted write damages neither earlier nor later lines.
func TestLogCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var want []postrider.ID
	send := func(n int) []byte {
		log, err := history.OpenLog(path, "relay")
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		for range n {
			id := postrider.NewID()
			want = append(want, id)
			log.Publish(t.Context(), []postrider.Message{{ID: id, Payload: []byte("key 1")}})
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	whole := send(2)
	one := len(whole) / 2
	for cut := 1; cut < one; cut++ {
		want = nil
		if err := os.WriteFile(path, whole[:one], 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(whole[one : one+cut]); err != nil {
			t.Fatal(err)
		}
		file.Close()
		send(1)
		got, err := history.ReadLog(path)
		if err != nil {
			t.Fatalf("cut after %d bytes: %v", cut, err)
		}
		if n := len(got); n != 2 && (n != 3 || cut != one-1) || got[n-1].ID != want[0] {
			t.Fatalf("cut after %d of %d bytes: %+v", cut, one, got)
		}
	}
}
