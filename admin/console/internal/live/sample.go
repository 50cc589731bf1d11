package live

// Sample is one sample of a database. Rates are messages per second since the previous sample,
// times are in seconds.
type Sample struct {
	T         int64 `json:"t" doc:"Unix seconds"`
	Enqueued  Value `json:"enqueued"`
	Published Value `json:"published"`
	Failed    Value `json:"failed"`
	Pending   Value `json:"pending"`
	Oldest    Value `json:"oldest"`
	P50       Value `json:"p50"`
	P95       Value `json:"p95"`
	P99       Value `json:"p99"`
}

func blank(t int64) Sample {
	u := Unknown()
	return Sample{t, u, u, u, u, u, u, u, u}
}

// Series are samples in columns: arrays of equal length.
type Series struct {
	Step      int     `json:"step" doc:"seconds from one to the next"`
	T         []int64 `json:"t"`
	Enqueued  []Value `json:"enqueued"`
	Published []Value `json:"published"`
	Failed    []Value `json:"failed"`
	Pending   []Value `json:"pending"`
	Oldest    []Value `json:"oldest"`
	P50       []Value `json:"p50"`
	P95       []Value `json:"p95"`
	P99       []Value `json:"p99"`
}

func newSeries(step, room int) *Series {
	values := func() []Value { return make([]Value, 0, room) }
	return &Series{step, make([]int64, 0, room), values(), values(), values(), values(), values(), values(), values(), values()}
}

func (s *Series) add(p Sample) {
	s.T = append(s.T, p.T)
	s.Enqueued = append(s.Enqueued, p.Enqueued)
	s.Published = append(s.Published, p.Published)
	s.Failed = append(s.Failed, p.Failed)
	s.Pending = append(s.Pending, p.Pending)
	s.Oldest = append(s.Oldest, p.Oldest)
	s.P50 = append(s.P50, p.P50)
	s.P95 = append(s.P95, p.P95)
	s.P99 = append(s.P99, p.P99)
}
