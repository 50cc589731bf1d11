package schema

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// magic is the first byte of every payload in Confluent's wire format. No Protobuf message starts
// with it, because it would be a tag of field 0.
const magic = 0

// headerSize is the size of the magic byte and the schema ID.
const headerSize = 5

func appendHeader(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, magic), id)
}

// cutHeader returns the schema ID and the rest of the payload.
func cutHeader(payload []byte) (id uint32, rest []byte, err error) {
	switch {
	case len(payload) < headerSize:
		return 0, nil, fmt.Errorf("the payload has %d bytes, fewer than the %d of a schema ID", len(payload), headerSize)
	case payload[0] != magic:
		return 0, nil, fmt.Errorf("the payload begins with byte %#x, not with the 0 that comes before a schema ID", payload[0])
	}
	return binary.BigEndian.Uint32(payload[1:]), payload[headerSize:], nil
}

// appendIndexes appends the position of a message type in its .proto file: the index of the
// outermost message, and of each nested one. The first message of a file is encoded as a single 0.
func appendIndexes(dst []byte, path []int) []byte {
	if len(path) == 1 && path[0] == 0 {
		return append(dst, 0)
	}
	dst = binary.AppendVarint(dst, int64(len(path)))
	for _, i := range path {
		dst = binary.AppendVarint(dst, int64(i))
	}
	return dst
}

// cutIndexes skips the message indexes. It does not check them: the reader's .proto file may define
// its messages in a different order.
func cutIndexes(b []byte) ([]byte, error) {
	count, n := binary.Varint(b)
	if n <= 0 || count < 0 || count > int64(len(b)) {
		return nil, errors.New("the payload has no valid message indexes behind its schema ID")
	}
	b = b[n:]
	for range count {
		_, n := binary.Varint(b)
		if n <= 0 {
			return nil, errors.New("the message indexes behind the schema ID are cut off")
		}
		b = b[n:]
	}
	return b, nil
}
