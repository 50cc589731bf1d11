package record

// The encoding of each record: put and take are its two directions.

func (i *Intent) put(l *line) {
	l.word(i.Destination)
	l.word(i.Key)
	l.number(i.Seq)
	l.word(i.ID)
	l.sum(i.Sum)
	l.flag(i.Poison)
	l.flag(i.Unnumbered)
	l.flag(i.Unordered)
	l.word(i.Tenant)
	l.time(i.At)
}

func (i *Intent) take(f *fields) {
	i.Destination, i.Key, i.Seq, i.ID = f.name(), f.name(), f.number(), f.word()
	i.Sum, i.Poison, i.Unnumbered, i.Unordered = f.sum(), f.flag(), f.flag(), f.flag()
	i.Tenant, i.At = f.name(), f.time()
}

func (r *Receipt) put(l *line) {
	l.number(int64(r.Partition))
	l.number(r.Offset)
	l.word(r.Key)
	l.number(r.Seq)
	l.word(r.ID)
	l.sum(r.Sum)
	l.time(r.At)
}

func (r *Receipt) take(f *fields) {
	r.Partition, r.Offset = int(f.number()), f.number()
	r.Key, r.Seq, r.ID = f.name(), f.number(), f.word()
	r.Sum, r.At = f.sum(), f.time()
}

func (e *Effect) put(l *line) {
	l.number(e.N)
	l.word(e.Consumer)
	l.word(e.Destination)
	l.word(e.Key)
	l.number(e.Seq)
	l.word(e.ID)
}

func (e *Effect) take(f *fields) {
	e.N, e.Consumer = f.number(), f.name()
	e.Destination, e.Key, e.Seq, e.ID = f.name(), f.name(), f.number(), f.word()
}

func (d *Dead) put(l *line) {
	l.word(d.ID)
	l.word(d.State)
	l.word(d.Actor)
}

func (d *Dead) take(f *fields) {
	d.ID, d.State, d.Actor = f.word(), f.name(), f.name()
}

func (x *Foreign) put(l *line) {
	l.number(x.N)
	l.word(x.Destination)
	l.word(x.Form)
	l.number(x.Ends)
}

func (x *Foreign) take(f *fields) {
	x.N, x.Destination, x.Form, x.Ends = f.number(), f.name(), f.name(), f.number()
}

func (o *Operation) put(l *line) {
	l.word(o.Kind)
	l.word(o.Client)
	l.number(o.N)
	l.number(o.Count)
	l.flag(o.Acked)
}

func (o *Operation) take(f *fields) {
	o.Kind, o.Client, o.N, o.Count, o.Acked = f.name(), f.name(), f.number(), f.number(), f.flag()
}

func (s *Lease) put(l *line) {
	l.word(s.Feed)
	l.number(int64(s.Shard))
	l.number(s.N)
	l.word(s.Member)
	l.flag(s.Released)
	l.time(s.At)
	l.time(s.Until)
}

func (s *Lease) take(f *fields) {
	s.Feed, s.Shard, s.N = f.name(), int(f.number()), f.number()
	s.Member, s.Released, s.At, s.Until = f.name(), f.flag(), f.time(), f.time()
}
