package postrider

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// ID identifies a message everywhere: in the store, at the broker and in the inbox. IDs made by [NewID] are version 7
// UUIDs, so they sort by the time they were made. The zero ID means "not set"; stores fill it in.
type ID [16]byte

var idClock struct {
	sync.Mutex
	last uint64 // milliseconds << 12 | counter
}

// NewID returns a new version 7 UUID. Within a process the IDs are strictly increasing, also when the wall clock
// steps back.
func NewID() ID {
	var id ID
	_, _ = rand.Read(id[8:]) // crypto/rand.Read never fails: it aborts the program instead

	now := time.Now()
	// The 12 bits below the milliseconds hold their fraction, and serve as the counter when calls come faster.
	stamp := uint64(now.UnixMilli())<<12 | uint64(now.Nanosecond()%int(time.Millisecond))<<12/uint64(time.Millisecond)
	idClock.Lock()
	stamp = max(stamp, idClock.last+1)
	idClock.last = stamp
	idClock.Unlock()

	binary.BigEndian.PutUint64(id[:8], stamp>>12<<16|0x7000|stamp&0xfff)
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseID reads the canonical form of a UUID of any version, in upper or lower case.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, fmt.Errorf("postrider: %q is not a UUID", s)
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, fmt.Errorf("postrider: %q is not a UUID", s)
	}
	return id, nil
}

// String returns the canonical lower-case form.
func (id ID) String() string {
	var b [36]byte
	id.encode(&b)
	return string(b[:])
}

// IsZero reports whether the ID has not been set.
func (id ID) IsZero() bool { return id == ID{} }

// Time returns the moment a version 7 ID was made, with millisecond precision, and the zero time for other versions.
func (id ID) Time() time.Time {
	if id[6]>>4 != 7 {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
}

// MarshalText implements [encoding.TextMarshaler] with the canonical form.
func (id ID) MarshalText() ([]byte, error) {
	var b [36]byte
	id.encode(&b)
	return b[:], nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]; it accepts what [ParseID] accepts.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

func (id ID) encode(b *[36]byte) {
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
}
