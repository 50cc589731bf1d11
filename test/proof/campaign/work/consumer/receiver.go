package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/webhook"
	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/work"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// Receive runs the HTTP destination. It records what it accepts in the files of the run before it
// responds.
//
// Its responses can be changed: POST /control?answer=500&share=30 affects 30 % of the keys until
// the next such request; a share of 0 is one key, that of the next message. Answers are ok, hang,
// redirect, slow, and those of refusals.
func Receive(ctx context.Context, plan work.Plan, m *Manner, log *slog.Logger) error {
	pool, db, err := open(ctx, plan)
	if err != nil {
		return err
	}
	defer pool.Close()
	in, err := newInbox(db, world.HTTP, m, log)
	if err != nil {
		return err
	}
	notes, err := newNotes(plan.Dir)
	if err != nil {
		return err
	}
	receiver, err := webhook.NewReceiver(webhook.Config{Secrets: []string{work.Secret}, MaxBody: world.MaxPayload, InFlight: inFlight, Logger: log},
		func(ctx context.Context, m postrider.Message) error {
			if err := in.Receive(ctx, m); err != nil {
				return err
			}
			return notes.add(m)
		})
	if err != nil {
		return err
	}
	mood := &mood{}
	mux := http.NewServeMux()
	mux.Handle("POST /hooks/"+world.HTTP, mood.before(receiver))
	mux.HandleFunc("POST /control", mood.control)
	listener, err := net.Listen("tcp", plan.Receiver)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 20 * time.Second} // a relay that is cut off leaves its connections open
	var all sync.WaitGroup
	all.Go(func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // requests that hang on purpose are cut off
	})
	all.Go(func() { err = errors.Join(err, in.Run(ctx)) })
	if ended := server.Serve(listener); !errors.Is(ended, http.ErrServerClosed) {
		return ended
	}
	all.Wait()
	return errors.Join(err, notes.file.Close())
}

// notes records receipts, in the order in which messages were accepted.
type notes struct {
	mu   sync.Mutex
	file *record.ReceiptWriter
	last int64
}

func newNotes(dir string) (*notes, error) {
	file, err := record.AppendReceipts(dir, world.HTTP)
	return &notes{file: file}, err
}

// add records a message. Positions are times, so that they also ascend over restarts.
func (n *notes) add(m postrider.Message) error {
	headers := work.OursOf(m.Headers)
	if _, foreign := headers.Foreign(); foreign {
		return nil
	}
	destination, key, seq, err := work.Read(m.Payload, headers)
	if err != nil {
		return err
	}
	r := record.Receipt{Sum: record.Sum(m.Payload, headers)}
	r.Destination, r.Key, r.Seq, r.ID = destination, key, seq, m.ID.String()
	n.mu.Lock()
	defer n.mu.Unlock()
	r.At = time.Now()
	r.Offset = max(n.last+1, r.At.UnixNano())
	n.last = r.Offset
	return errors.Join(n.file.Receipt(r), n.file.Flush())
}

// mood is how the receiver responds.
type mood struct{ now atomic.Pointer[answer] }

type answer struct {
	kind  string
	share uint32 // percent of keys; 0: one
	one   atomic.Pointer[string]
}

// concerns reports whether a key is affected.
func (a *answer) concerns(key string) bool {
	if a.share == 0 {
		a.one.CompareAndSwap(nil, &key)
		return *a.one.Load() == key
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key))
	return hash.Sum32()%100 < a.share
}

func (m *mood) control(w http.ResponseWriter, r *http.Request) {
	share, err := strconv.ParseUint(cmp.Or(r.FormValue("share"), "100"), 10, 32)
	switch kind := r.FormValue("answer"); kind {
	case "ok", "403", "404", "429", "500", "503", "hang", "redirect", "slow":
		m.now.Store(&answer{kind: kind, share: uint32(share)})
	default:
		err = errors.Join(err, fmt.Errorf("there is no answer %q", kind))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (m *mood) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := m.now.Load()
		if a == nil || !a.concerns(r.Header.Get("ce-partitionkey")) {
			next.ServeHTTP(w, r)
			return
		}
		switch a.kind {
		case "403", "404", "429", "500", "503":
			if a.kind == "429" {
				w.Header().Set("Retry-After", "2")
			}
			status, _ := strconv.Atoi(a.kind)
			http.Error(w, "not now", status)
		case "hang":
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server would not notice that the client has disconnected
			<-r.Context().Done()
		case "redirect":
			http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusFound)
		case "slow":
			t := time.NewTimer(200*time.Millisecond + rand.N(time.Second))
			defer t.Stop()
			<-t.C
			next.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
