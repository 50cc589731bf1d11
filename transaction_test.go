package postrider_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/memory"
)

func TestTransactionEndsOnce(t *testing.T) {
	for _, committed := range []bool{true, false} {
		ctx, end := postrider.ForTransaction(t.Context())
		var calls []bool
		postrider.AfterCommit(ctx, func() { calls = append(calls, true) })
		postrider.AfterRollback(ctx, func() { calls = append(calls, false) })
		end(committed)
		end(!committed)
		end(committed)
		if !slices.Equal(calls, []bool{committed}) {
			t.Errorf("end(%v) called %v", committed, calls)
		}
		if postrider.AfterCommit(ctx, func() {}) {
			t.Error("a hook was taken that nobody will call")
		}
	}
}

func TestHooksFromManyGoroutines(t *testing.T) {
	ctx, end := postrider.ForTransaction(t.Context())
	var all sync.WaitGroup
	calls := 0
	for range 50 {
		all.Go(func() { postrider.AfterCommit(ctx, func() { calls++ }) })
	}
	all.Wait()
	end(true)
	if calls != 50 {
		t.Errorf("%d calls, want 50", calls)
	}
}

// AfterCommit takes what must not happen before the commit, or without it; AfterRollback takes what
// must be undone.
func ExampleAfterCommit() {
	var db postrider.Transactor[*memory.Tx] = memory.Open(memory.Config{})
	seats := 10
	for _, outcome := range []error{nil, errors.New("payment declined")} {
		err := db.Do(context.Background(), func(ctx context.Context, tx *memory.Tx) error {
			seats--
			postrider.AfterRollback(ctx, func() { seats++ })
			postrider.AfterCommit(ctx, func() { fmt.Println("booked, seats left:", seats) })
			return outcome
		})
		fmt.Println(err)
	}
	fmt.Println("seats left:", seats)
	// Output:
	// booked, seats left: 9
	// <nil>
	// payment declined
	// seats left: 9
}

// files is a custom transactor, for changes that are made by renaming a file.
type files struct{}

func (files) Do(ctx context.Context, f func(ctx context.Context, path string) error) error {
	ctx, end := postrider.ForTransaction(ctx)
	defer end(false)
	if err := f(ctx, "ledger.new"); err != nil {
		return err
	}
	fmt.Println("rename ledger.new to ledger")
	end(true)
	return nil
}

func ExampleForTransaction() {
	err := files{}.Do(context.Background(), func(ctx context.Context, path string) error {
		postrider.AfterCommit(ctx, func() { fmt.Println("tell the others") })
		fmt.Println("write", path)
		return nil
	})
	fmt.Println(err)
	// Output:
	// write ledger.new
	// rename ledger.new to ledger
	// tell the others
	// <nil>
}

// After an uncertain outcome, check whether the work was done before repeating it.
func ExampleErrUncertain() {
	err := fmt.Errorf("%w: connection reset", postrider.ErrUncertain)
	if errors.Is(err, postrider.ErrUncertain) {
		fmt.Println("look for the order before placing it again")
	}
	// Output: look for the order before placing it again
}
