package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
)

// fulfilment is the data of the sagas.
type fulfilment struct {
	Order    string `json:"order"`
	Customer string `json:"customer"`
	Total    int64  `json:"total"`
}

// trouble describes the faults of an order: steps whose action fails permanently, is slow, or
// cannot be compensated.
type trouble struct{ fails, slow, sticks string }

var troubles = map[string]trouble{
	"DH-slow":        {slow: "print-label"},
	"DH-slow-retry":  {slow: "print-label"},
	"DH-undone":      {fails: "charge-card"},
	"DH-stuck":       {fails: "hand-to-carrier", sticks: "charge-card"},
	"DH-stuck-retry": {fails: "hand-to-carrier", sticks: "charge-card"},
	"DH-stuck-skip":  {fails: "hand-to-carrier", sticks: "charge-card"},
}

var reasons = map[string]string{
	"charge-card":     "card declined by 招商银行",
	"hand-to-carrier": "GHN refuses the parcel: no address",
}

// seedSagas starts sagas that complete, wait, retry, are compensated and cannot be compensated, and
// a runner for them.
func (s *shop) seedSagas(ctx context.Context, run func(func() error)) {
	s.t.Helper()
	forEver := retry.Policy{Attempts: 1000, First: time.Hour, Most: time.Hour}
	step := func(name string) saga.Steps[pgx.Tx, fulfilment] {
		return saga.Step(name, func(_ context.Context, _ pgx.Tx, d *fulfilment) error {
			if troubles[d.Order].fails == name {
				return postrider.Permanent(errors.New(reasons[name]))
			}
			if troubles[d.Order].slow == name && !s.healed.is("saga-"+d.Order) {
				return errors.New("warehouse Bình Dương does not answer: connection refused")
			}
			return nil
		}, func(_ context.Context, _ pgx.Tx, d *fulfilment) error {
			if troubles[d.Order].sticks == name && !s.healed.is("saga-"+d.Order) {
				return errors.New("refund window is closed")
			}
			return nil
		}).Retry(forEver).RetryUndo(retry.Policy{Attempts: 1, First: time.Hour})
	}
	approve := saga.Wait("approval", func(context.Context, pgx.Tx, *fulfilment, string) error { return nil }, nil)
	fulfil, err := saga.New(s.db.Sagas(), "fulfil-order", step("reserve-stock"), saga.Parallel(step("charge-card"), step("print-label")),
		approve, step("hand-to-carrier"))
	if err != nil {
		s.t.Fatal(err)
	}
	runner, err := saga.NewRunner(saga.Config{Poll: 200 * time.Millisecond, SlowRetry: time.Hour, Logger: quiet()}, fulfil)
	if err != nil {
		s.t.Fatal(err)
	}
	begin := func(id string, d fulfilment, approved bool) {
		d.Order, d.Total = id, 9_007_199_254_740_993
		err := pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
			if err := fulfil.Start(ctx, tx, id, d); err != nil || !approved {
				return err
			}
			_, err := fulfil.Signal(ctx, tx, id, "approval", "ok")
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for n := range 8 {
		begin(fmt.Sprintf("DH-%05d", 20_000+n), fulfilment{Customer: customers[n%len(customers)].name}, true)
	}
	for _, id := range []string{"DH-wait", "DH-compensate", "DH-skipwait"} {
		begin(id, fulfilment{Customer: "李秀英"}, false)
	}
	for _, id := range []string{"DH-slow", "DH-slow-retry"} {
		begin(id, fulfilment{Customer: "Trần Quốc Đạt"}, true)
	}
	begin("DH-undone", fulfilment{Customer: "王小明"}, true)
	for _, id := range []string{"DH-stuck", "DH-stuck-retry", "DH-stuck-skip"} {
		begin(id, fulfilment{Customer: "Phạm Hữu Nghĩa"}, true)
	}
	run(func() error { return runner.Run(ctx) })
}
