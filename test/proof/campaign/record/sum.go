package record

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
)

// Sum returns a hash of a message: FNV-64a over the payload and the producer's headers, sorted by
// name. Each part is preceded by its length, so that no byte can move from one part to the next
// undetected.
func Sum(payload []byte, headers map[string]string) uint64 {
	h := fnv.New64a()
	part := func(b []byte) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	part(payload)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		part([]byte(name))
		part([]byte(headers[name]))
	}
	return h.Sum64()
}
