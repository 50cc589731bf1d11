package stdout

import (
	"fmt"
	"os"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

func init() {
	broker.Register(broker.Driver{
		Name:      "stdout",
		Schemes:   []string{"stdout"},
		Example:   "stdout:",
		Doc:       "The standard output of the process, one line of JSON a message. The URL is \"stdout:\".",
		Publisher: open,
	})
}

func open(s *broker.Settings) (postrider.Publisher, error) {
	if format, ok := s.Values["format"]; ok {
		return nil, fmt.Errorf("stdout: format is %q, but the lines have only one: JSON with everything in it", format)
	}
	return New(os.Stdout), nil
}
