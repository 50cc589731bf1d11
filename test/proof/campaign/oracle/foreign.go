package oracle

import (
	"errors"
	"fmt"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// foreign checks messages of other senders: a consumer handles each, or makes it a dead letter. A
// sender that gives no ID, or sends twice, may have it handled twice.
type foreign struct {
	count    int64
	vanished evidence // I1
}

func readForeign(r *record.Reader) (f foreign, err error) {
	for x, err := range r.Foreign() {
		if errors.Is(err, record.ErrTruncated) {
			break
		}
		if err != nil {
			return f, err
		}
		f.count++
		if x.Ends == 0 {
			f.vanished.add("foreign message %d of %s (%s) was neither handled nor a dead letter", x.N, x.Destination, x.Form)
		}
	}
	return f, nil
}

func (f foreign) String() string {
	if f.count == 0 {
		return ""
	}
	return fmt.Sprintf("%d foreign messages, of which %d vanished", f.count, f.vanished.count)
}
