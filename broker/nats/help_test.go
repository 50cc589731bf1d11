package nats_test

import (
	"context"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// admin returns the client's JetStream API.
func admin(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	conn, err := client.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func removeAfter(t testing.TB, url, subject string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		js := admin(t, url)
		if stream, err := js.StreamNameBySubject(ctx, subject); err == nil {
			_ = js.DeleteStream(ctx, stream)
		}
	})
}

// addStreamNamed creates a stream that accepts atomic batches.
func addStreamNamed(t *testing.T, url, name, subject string) {
	t.Helper()
	config := jetstream.StreamConfig{Name: name, Subjects: []string{subject}, AllowAtomicPublish: true}
	if _, err := admin(t, url).CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	removeAfter(t, url, subject)
}

// addSubject adds a subject to a stream that accepts atomic batches.
func addSubject(t *testing.T, url, name, subject string) {
	t.Helper()
	js := admin(t, url)
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.Subjects = append(config.Subjects, subject)
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}
