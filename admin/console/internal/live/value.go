package live

import (
	"math"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// Value is a number that may be unknown, which is NaN here and null in JSON.
type Value float64

// Unknown returns the unknown value.
func Unknown() Value { return Value(math.NaN()) }

// Known reports whether the value is known.
func (v Value) Known() bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// MarshalJSON encodes a number with at most six digits, or null.
func (v Value) MarshalJSON() ([]byte, error) {
	if !v.Known() {
		return []byte("null"), nil
	}
	if f := float64(v); f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.AppendInt(nil, int64(f), 10), nil
	}
	return strconv.AppendFloat(nil, float64(v), 'g', 6, 64), nil
}

// UnmarshalJSON decodes what MarshalJSON encodes.
func (v *Value) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*v = Unknown()
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	*v = Value(f)
	return err
}

// Schema implements [huma.SchemaProvider].
func (Value) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Nullable: true}
}

// larger returns the larger of two values, or the known one.
func larger(a, b Value) Value {
	if !a.Known() || b.Known() && b > a {
		return b
	}
	return a
}
