package schema

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/postrider/postrider"
)

// RegistryConfig configures a [Registry]. URL is required.
type RegistryConfig struct {
	// URL is the root of the registry's API, such as https://registry.example.com:8081, or
	// …/apis/ccompat/v7 of Apicurio. It must not contain credentials.
	URL string
	// User and Password are sent with basic authentication, over https or to this machine only. For
	// Confluent Cloud they are the API key and its secret. Default to none.
	User, Password string
	// TLS holds the registry's certificate authority and the client's certificate. Defaults to the
	// system's authorities.
	TLS *tls.Config
	// Timeout limits the duration of one request. Defaults to 5 s.
	Timeout time.Duration
	// MaxAnswer is the maximum size of an answer in bytes. Defaults to 1 MiB.
	MaxAnswer int64
	// Cache is how many schemas and how many IDs are cached. Defaults to 1,000 of each.
	Cache int
	// ReadOnly makes producers look up the IDs of their schemas, which must already be registered.
	// Defaults to false: producers register their schemas, and the registry refuses incompatible
	// ones.
	ReadOnly bool
	// Subject returns the subject for the schema of a message's record. Defaults to the record's
	// full name, such as shop.OrderPlaced (Confluent's RecordNameStrategy). Kafka Connect and
	// others that use the topic expect "orders-value" for the topic orders.
	Subject func(m *postrider.Message, record string) string
}

// withDefaults sets the defaults and reports all mistakes. Its errors never contain the URL, which
// may hold a password.
func (c RegistryConfig) withDefaults() (RegistryConfig, *url.URL, error) {
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, 1<<20)
	c.Cache = cmp.Or(c.Cache, 1000)
	if c.Subject == nil {
		c.Subject = func(_ *postrider.Message, record string) string { return record }
	}
	var errs []error
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("schema: registry: "+format, args...))
		}
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		complain(true, "URL: want an address such as https://registry.example.com")
		u = new(url.URL)
	}
	complain(u.User != nil, "URL: holds a user: set User and Password instead")
	complain(u.RawQuery != "" || u.Fragment != "", "URL: holds a query (?) or a fragment (#)")
	complain(c.User == "" && c.Password != "", "Password is set and User is not")
	complain(c.User != "" && u.Scheme == "http" && !onLoopback(u), "User is set and URL is http: others on the network could read the password: want https")
	complain(c.TLS != nil && c.TLS.InsecureSkipVerify, "TLS: InsecureSkipVerify is set: give RootCAs the registry's authority instead")
	complain(c.TLS != nil && u.Scheme == "http", "TLS is set and URL is http: want https")
	complain(c.Timeout < 0, "Timeout is %s: want a positive time", c.Timeout)
	complain(c.MaxAnswer < 0 || c.MaxAnswer > 1<<30, "MaxAnswer is %d: want a positive number, at most 1 GiB", c.MaxAnswer)
	complain(c.Cache < 0, "Cache is %d: want a positive number", c.Cache)
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return c, u, errors.Join(errs...)
}

func onLoopback(u *url.URL) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.IsLoopback()
}
