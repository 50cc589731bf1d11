package nats

import (
	"testing"

	client "github.com/nats-io/nats.go"

	"github.com/postrider/postrider"
)

func TestReadAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer string
		stored bool
		class  postrider.Class
	}{
		{`{"stream":"S","seq":12}`, true, 0},
		{`{"stream":"S", "domain":"hub", "seq": 12}`, true, 0},
		{`{"stream":"S","seq":12,"duplicate": true}`, true, 0},
		{`{"stream":"S","seq":0,"duplicate": true}`, false, postrider.ClassUnknown},
		{`{"stream":"S","seq":0}`, false, postrider.ClassUnknown},
		{`{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S","seq":0}`, false, postrider.ClassUnavailable},
		{`{"error":{"code":503,"err_code":10077,"description":"message too large"},"stream":"S","seq":0}`, false, postrider.ClassPermanent},
		{`{"error":{"code":503,"err_code":10077,"description":"disk on fire"},"stream":"S","seq":0}`, false, postrider.ClassUnknown},
		{`{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"},"stream":"S","seq":0}`, false, postrider.ClassPermanent},
		{`{"stream":"S","seq":7,"error":{"code":429,"err_code":10167,"description":"too many requests"}}`, false, postrider.ClassUnavailable},
		{`{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`, false, postrider.ClassUnknown},
		{`{"error":{"code":500,"err_code":10051,"description":"?"}}`, false, postrider.ClassUnknown},
		{`hello`, false, postrider.ClassUnknown},
		{`{"ok":true}`, false, postrider.ClassUnknown},
		{``, false, postrider.ClassUnknown},
	} {
		err := readAnswer(&client.Msg{Data: []byte(c.answer)})
		if (err == nil) != c.stored || postrider.ClassOf(err) != c.class {
			t.Errorf("%s: %v error %v", c.answer, postrider.ClassOf(err), err)
		}
	}
}
