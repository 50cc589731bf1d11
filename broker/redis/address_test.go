package redis_test

import (
	"fmt"
	"strings"
	"testing"

	client "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/broker/redis"
)

// TestContradictions checks that all contradictory settings are reported.
func TestContradictions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg  redis.Config
		want []string
	}{
		{redis.Config{URL: "redis://a:1,b:2/0"}, []string{"several hosts", "cluster", "sentinel"}},
		{redis.Config{URL: "redis://a:1,,b:2/0", Cluster: true}, []string{"is not an address"}},
		{redis.Config{URL: "redis://a:1,b:2/1", Cluster: true, Sentinel: "shop"}, []string{"cluster and sentinel", "a database other than 0"}},
		{redis.Config{URL: "redis://a:1", SentinelUser: "u"}, []string{"sentinel is not", "sentinel_password_file is not"}},
		{redis.Config{URL: "redis://:p@a:1", PasswordFile: "f"}, []string{"password_file", "url has a password"}},
		{redis.Config{URL: "redis://a:1", Cluster: true, Ordered: true, Name: "a}b"}, []string{"brace"}},
		{redis.Config{URL: "redis://a:1", Client: &client.UniversalOptions{Addrs: []string{"b:2"}, ReadOnly: true, Protocol: 3}},
			[]string{"Addrs: use URL", "ReadOnly", "Protocol"}},
	} {
		_, err := redis.NewPublisher(c.cfg)
		for _, want := range c.want {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: got %v, want %q", c.cfg.URL, err, want)
			}
		}
	}
}
