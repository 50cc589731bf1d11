package postgres

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/headers"
)

// decoder decodes values in PostgreSQL's binary format. It records the first error and continues.
type decoder struct {
	text []byte
	err  error
}

// epoch is PostgreSQL's zero timestamp.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (d *decoder) int16(b []byte) int16 {
	if !d.sized(b, 2) {
		return 0
	}
	return int16(binary.BigEndian.Uint16(b))
}

func (d *decoder) int32(b []byte) int32 {
	if !d.sized(b, 4) {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

func (d *decoder) int64(b []byte) int64 {
	if !d.sized(b, 8) {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

func (d *decoder) sized(b []byte, size int) bool {
	if len(b) != size && d.err == nil {
		d.err = fmt.Errorf("postgres: a value of %d bytes where %d were expected", len(b), size)
	}
	return len(b) == size
}

func (d *decoder) time(b []byte) time.Time {
	return epoch.Add(time.Duration(d.int64(b)) * time.Microsecond)
}

// message decodes the columns of read_log from id on.
func (d *decoder) message(row [][]byte, m *postrider.Message) {
	if d.sized(row[0], 16) {
		copy(m.ID[:], row[0])
	}
	// All texts of a message share one allocation.
	texts := [...]*string{
		&m.Type, &m.AggregateType, &m.AggregateID, &m.Key, &m.Topic, &m.RoutingKey, &m.TenantID, &m.ContentType, nil,
		&m.SchemaID, &m.DedupKey, &m.CorrelationID, &m.CausationID,
	}
	d.text = d.text[:0]
	for i, target := range texts {
		if target != nil {
			d.text = append(d.text, row[1+i]...)
		}
	}
	all := string(d.text)
	for i, target := range texts {
		if target != nil {
			n := len(row[1+i])
			*target, all = all[:n], all[n:]
		}
	}
	m.SchemaVersion = int(d.int32(row[9]))
	m.OccurredAt = d.time(row[14])
	m.Headers = d.headers(row[15])
	m.Payload = append(make([]byte, 0, len(row[16])), row[16]...)
	if len(row[17]) > 0 {
		m.DeliverAfter = d.time(row[17])
	}
	if len(row[18]) > 0 {
		m.Priority = int(d.int32(row[18]))
	}
}

// headers decodes a jsonb object. Values that are not strings, and anything else than an object,
// keep their JSON form. Only plain SQL can have written those.
func (d *decoder) headers(b []byte) map[string]string {
	if len(b) < 2 {
		return nil
	}
	return headers.Parse(b[1:]) // the first byte is the version of the format
}
