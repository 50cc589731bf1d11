package bench

import "context"

// fillStep is the number of messages per transaction of fill.
const fillStep = 10_000

// fillMessages inserts messages with the numbers $1 to $2, with payloads cut out of one block of
// noise.
const fillMessages = `INSERT INTO @schema@.messages (type, topic, aggregate_type, aggregate_id, content_type, occurred_at, payload)
SELECT 'order.placed', $7, 'order', (n % $3)::text, 'application/octet-stream', clock_timestamp(),
       int8send(n) || substr($4::bytea, 1 + (n * 7919 % $5)::integer, $6)
FROM generate_series($1::bigint, $2::bigint) n`

// fill fills the backlog with the messages numbered from first up to but not including end.
func (l *Lab) fill(ctx context.Context, first, end int64) error {
	const spread = 1 << 16
	size := l.Payload - numberSize
	block := noise(spread + size)
	for from := first; from < end; from += fillStep {
		l.progressf("filling: %d of %d messages", from, end)
		to := min(from+fillStep, end)
		_, err := l.admin.Exec(ctx, l.in(fillMessages), from, to-1, int64(l.Keys), block, int64(spread), size, l.Topic)
		if err != nil {
			return err
		}
	}
	return nil
}
