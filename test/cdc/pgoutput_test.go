package cdc_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// relation is a table as described in the stream.
type relation struct {
	schema, name string
	columns      []string
}

// row is an inserted row: the text of each column that is not null.
type row struct {
	relation *relation
	values   map[string]string
}

// decoder decodes the messages of pgoutput, version 1, as far as inserts need it.
type decoder struct {
	relations map[uint32]*relation
	open      []row          // of the current transaction
	kinds     map[string]int // number of messages of each kind
	names     map[string]int // number of rows of each table
}

func newDecoder() *decoder {
	return &decoder{relations: map[uint32]*relation{}, kinds: map[string]int{}, names: map[string]int{}}
}

// decode decodes one message. At the end of a transaction it returns its rows and the position
// after it.
func (d *decoder) decode(data []byte) (rows []row, end uint64, err error) {
	kind, in := data[0], bytes.NewBuffer(data[1:])
	d.kinds[string(kind)]++
	switch kind {
	case 'B':
		d.open = nil
	case 'C':
		in.Next(1 + 8) // flags, position of the commit
		return d.open, binary.BigEndian.Uint64(in.Next(8)), nil
	case 'R':
		oid := binary.BigEndian.Uint32(in.Next(4))
		r := &relation{schema: text(in), name: text(in)}
		in.Next(1) // replica identity
		for range binary.BigEndian.Uint16(in.Next(2)) {
			in.Next(1) // whether it is part of the key
			r.columns = append(r.columns, text(in))
			in.Next(4 + 4) // type and its modifier
		}
		d.relations[oid] = r
	case 'I':
		r := d.relations[binary.BigEndian.Uint32(in.Next(4))]
		if r == nil {
			return nil, 0, fmt.Errorf("a row of a table that was not described")
		}
		in.Next(1) // "N", the new row
		values := map[string]string{}
		for i := range binary.BigEndian.Uint16(in.Next(2)) {
			switch form, _ := in.ReadByte(); form {
			case 'n':
			case 't':
				values[r.columns[i]] = string(in.Next(int(binary.BigEndian.Uint32(in.Next(4)))))
			default:
				return nil, 0, fmt.Errorf("column %s has the form %q", r.columns[i], form)
			}
		}
		d.names[r.name]++
		d.open = append(d.open, row{r, values})
	}
	return nil, 0, nil
}

// text reads up to a zero byte.
func text(in *bytes.Buffer) string {
	s, _ := in.ReadString(0)
	return s[:max(0, len(s)-1)]
}
