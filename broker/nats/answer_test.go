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
		scope  postrider.Scope
	}{
		{`{"stream":"S","seq":12}`, true, 0},
		{`{"stream":"S", "domain":"hub", "seq": 12}`, true, 0},
		{`{"stream":"S","seq":12,"duplicate": true}`, true, 0},
		{`{"stream":"S","seq":0,"duplicate": true}`, false, postrider.ScopeUnknown},
		{`{"stream":"S","seq":0}`, false, postrider.ScopeUnknown},
		{`{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S","seq":0}`, false, postrider.ScopeName},
		{`{"error":{"code":503,"err_code":10077,"description":"message too large"},"stream":"S","seq":0}`, false, postrider.ScopeMessage},
		{`{"error":{"code":503,"err_code":10077,"description":"disk on fire"},"stream":"S","seq":0}`, false, postrider.ScopeUnknown},
		{`{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"},"stream":"S","seq":0}`, false, postrider.ScopeMessage},
		{`{"stream":"S","seq":7,"error":{"code":429,"err_code":10167,"description":"too many requests"}}`, false, postrider.ScopeName},
		{`{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}`, false, postrider.ScopeUnknown},
		{`{"error":{"code":400,"err_code":10060,"description":"expected stream does not match"}}`, false, postrider.ScopeName},
		{`{"error":{"code":400,"err_code":10109,"description":"invalid operation on sealed stream"}}`, false, postrider.ScopeName},
		{`{"error":{"code":400,"err_code":10002,"description":"resource limits exceeded for account"}}`, false, postrider.ScopeDestination},
		{`{"error":{"code":503,"err_code":10023,"description":"insufficient resources"}}`, false, postrider.ScopeDestination},
		{`{"error":{"code":500,"err_code":10047,"description":"insufficient storage resources available"}}`, false, postrider.ScopeDestination},
		{`{"error":{"code":500,"err_code":10051,"description":"?"}}`, false, postrider.ScopeUnknown},
		{`hello`, false, postrider.ScopeUnknown},
		{`{"ok":true}`, false, postrider.ScopeUnknown},
		{``, false, postrider.ScopeUnknown},
	} {
		err := readAnswer(&client.Msg{Data: []byte(c.answer)})
		if (err == nil) != c.stored || postrider.ScopeOf(err) != c.scope {
			t.Errorf("%s: error %v with scope %v, want %v", c.answer, err, postrider.ScopeOf(err), c.scope)
		}
	}
}
