package trial

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// A payload is JSON with fields at fixed offsets, so that every system can store it as it likes and
// the receiver need not parse it.
const (
	payloadSize = 256
	payloadHead = `{"number":"`
	numberAt    = len(payloadHead)
	numberSize  = 10
	keyAt       = numberAt + numberSize + len(`","key":"`)
	keySize     = 6
	seqAt       = keyAt + keySize + len(`","seq":"`)
	seqSize     = 10
)

// newPayload returns a payload that compresses badly.
func newPayload(number, key, seq int64) []byte {
	p := make([]byte, 0, payloadSize)
	p = fmt.Appendf(p, payloadHead+`%010d","key":"%06d","seq":"%010d","pad":"`, number, key, seq)
	for len(p) < payloadSize-2 {
		p = strconv.AppendUint(p, rand.Uint64(), 36)
	}
	return append(p[:payloadSize-2], `"}`...)
}

// readPayload returns the arguments of newPayload; ok is false for any other payload.
func readPayload(p []byte) (number, key, seq int64, ok bool) {
	if len(p) != payloadSize || !bytes.HasPrefix(p, []byte(payloadHead)) {
		return 0, 0, 0, false
	}
	number, okNumber := digits(p[numberAt : numberAt+numberSize])
	key, okKey := digits(p[keyAt : keyAt+keySize])
	seq, okSeq := digits(p[seqAt : seqAt+seqSize])
	return number, key, seq, okNumber && okKey && okSeq
}

func digits(p []byte) (n int64, ok bool) {
	for _, c := range p {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
