package oracle

import (
	"errors"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// calls checks the operations that had to take effect exactly once.
type calls struct {
	count  int64
	lost   evidence // I1
	double evidence // I5
}

func readOperations(r *record.Reader) (c calls, err error) {
	for o, err := range r.Operations() {
		if errors.Is(err, record.ErrTruncated) {
			break
		}
		if err != nil {
			return c, err
		}
		c.count++
		if o.Count > 1 {
			c.double.add("%s %s %d took effect %d times", o.Kind, o.Client, o.N, o.Count)
		}
		if o.Count < 1 && o.Acked {
			c.lost.add("%s %s %d was confirmed and did not take effect", o.Kind, o.Client, o.N)
		}
	}
	return c, nil
}
