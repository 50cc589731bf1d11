package brokers

import (
	"context"
	"fmt"

	"github.com/hibiken/asynq"
)

// Worker is the mux of an application that uses asynq without Postrider.
func Worker() *asynq.ServeMux {
	mux := asynq.NewServeMux()
	mux.HandleFunc("order.placed", handle)
	return mux
}

func charge(_ context.Context, id, order string, payload []byte) error {
	_, err := fmt.Println(id, order, len(payload))
	return err
}

//docs:begin worker

func handle(ctx context.Context, t *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx)
	return charge(ctx, id, t.Headers()["ce-subject"], t.Payload())
}

//docs:end
