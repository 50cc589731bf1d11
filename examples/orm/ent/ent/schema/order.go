// Package schema describes the tables of the example to ent.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// Order is an order of the shop.
type Order struct{ ent.Schema }

// Fields implements [ent.Interface].
func (Order) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").MaxLen(36).Immutable(),
		field.String("item").MaxLen(100),
	}
}
