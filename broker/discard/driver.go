package discard

import (
	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func init() {
	broker.Register(broker.Driver{
		Name:      "discard",
		Schemes:   []string{"discard"},
		Example:   "discard:",
		Doc:       "Nowhere: every message counts as confirmed and is forgotten. The URL is \"discard:\".",
		Publisher: func(*broker.Settings) (postrider.Publisher, error) { return New(), nil },
	})
}
