package broker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/broker/codec"
)

// Kind is the kind of an option's value.
type Kind string

// The kinds. In a configuration file a [Duration] is written as "1m30s", and a [List] as a list or
// as comma-separated text.
const (
	Text     Kind = "text"
	Secret   Kind = "secret" // text that is never shown
	Int      Kind = "int"
	Bool     Kind = "bool"
	Duration Kind = "duration"
	List     Kind = "list"
)

// Option describes one setting of a destination.
type Option struct {
	Name    string // in lower case, with underscores
	Kind    Kind
	Default string   // as text; empty means none
	Doc     string   // one sentence, for the reference and the schema
	Values  []string // the allowed values; empty allows any
}

// Common returns the options that every destination has.
func Common() []Option {
	formats := make([]string, 0, 4)
	for _, f := range codec.Formats() {
		formats = append(formats, string(f))
	}
	return []Option{
		{Name: "format", Kind: Text, Default: string(codec.CloudEvents), Values: formats, Doc: "How a message is laid out."},
		{Name: "source", Kind: Text, Default: "postrider", Doc: "The CloudEvents attribute of that name: who speaks."},
		{Name: "name", Kind: Text, Doc: "What a consumer receives from: a topic, subject, queue or stream."},
		{Name: "group", Kind: Text, Doc: "The consumer's group: members of one share the messages."},
		{Name: "in_flight", Kind: Int, Default: "64", Doc: "Most messages that a consumer handles at a time."},
		{Name: "max_waiting", Kind: Int, Default: "1000", Doc: "Most messages of a consumer that wait for a retry, or behind another one of their key."},
		{Name: "attempts", Kind: Int, Default: "10", Doc: "How often a consumer's handler may fail before a message is a dead letter."},
		{Name: "dead_letter", Kind: Text, Doc: "Where a consumer's dead letters go: a topic, subject, queue or stream; default: their keys stand still."},
	}
}

// TLSOptions returns the options of brokers that support TLS; see [Settings.TLS].
func TLSOptions() []Option {
	return []Option{
		{Name: "ca_file", Kind: Text, Doc: "PEM file with the authorities that may vouch for the server; default: the system's."},
		{Name: "cert_file", Kind: Text, Doc: "PEM file with the client's certificate."},
		{Name: "key_file", Kind: Text, Doc: "PEM file with the key of the client's certificate."},
	}
}

func (d Driver) options() []Option { return slices.Concat(Common(), d.Options) }

// Check reports all options that the driver does not know or cannot parse, joined with
// [errors.Join].
func (d Driver) Check(values map[string]string) error {
	var errs []error
	options := d.options()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(options, func(o Option) bool { return o.Name == name })
		if i < 0 {
			var known []string
			for _, o := range options {
				known = append(known, o.Name)
			}
			errs = append(errs, fmt.Errorf("%s: unknown option %q: %s has %s", name, name, d.Name, strings.Join(known, ", ")))
			continue
		}
		if err := options[i].check(values[name]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (o Option) check(value string) error {
	var err error
	switch o.Kind {
	case Int:
		_, err = strconv.Atoi(value)
	case Bool:
		_, err = strconv.ParseBool(value)
	case Duration:
		_, err = time.ParseDuration(value)
	default: // any text will do
	}
	if err != nil {
		return fmt.Errorf("%q is not a value of kind %s", value, o.Kind)
	}
	if len(o.Values) > 0 && !slices.Contains(o.Values, value) {
		return fmt.Errorf("%q is none of %s", value, strings.Join(o.Values, ", "))
	}
	return nil
}

// Settings holds the options given for one destination. The getters return an option's default if
// it is not set; they panic on an option that the driver does not declare.
type Settings struct {
	// URL is the broker's address, with credentials. It must never be logged.
	URL string
	// Values are the options, by name.
	Values map[string]string
	// Dial replaces how connections are opened, if the broker's client supports that. Nil means the
	// client's default.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger receives outages and recoveries. Nil means [slog.Default].
	Logger *slog.Logger
	// Certificate is called with each certificate that a server presents, and with the client's
	// own, if any of the [TLSOptions] is set. Nil means no call.
	Certificate func(*x509.Certificate)

	driver  string
	options []Option
}

// Text returns an option's value as text.
func (s *Settings) Text(name string) string {
	if v, ok := s.Values[name]; ok {
		return v
	}
	for _, o := range s.options {
		if o.Name == name {
			return o.Default
		}
	}
	panic("broker: option " + name + " is not declared")
}

// Int returns an option of kind [Int]; 0 if it has neither a value nor a default.
func (s *Settings) Int(name string) int {
	n, _ := strconv.Atoi(s.Text(name)) // Check has validated it
	return n
}

// Bool returns an option of kind [Bool].
func (s *Settings) Bool(name string) bool {
	b, _ := strconv.ParseBool(s.Text(name))
	return b
}

// Duration returns an option of kind [Duration].
func (s *Settings) Duration(name string) time.Duration {
	d, _ := time.ParseDuration(s.Text(name))
	return d
}

// List returns an option of kind [List], split at commas.
func (s *Settings) List(name string) []string { return splitList(s.Text(name)) }

func splitList(text string) []string {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// Format returns the message format.
func (s *Settings) Format() codec.Format { return codec.Format(s.Text("format")) }

// TLS returns the configuration given by the [TLSOptions], or nil if none of them is set. The
// server's certificate is always verified. The client's certificate is reloaded for each
// connection, so that it can be rotated without a restart.
func (s *Settings) TLS() (*tls.Config, error) {
	ca, cert, key := s.Text("ca_file"), s.Text("cert_file"), s.Text("key_file")
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Certificate != nil {
		config.VerifyConnection = func(state tls.ConnectionState) error {
			for _, shown := range state.PeerCertificates {
				s.Certificate(shown)
			}
			return nil
		}
	}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file: %s holds no certificate", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, errors.New("cert_file and key_file: only one of them is set, both are needed")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cert_file and key_file: %w", err)
		}
		if s.Certificate != nil {
			s.Certificate(pair.Leaf)
		}
		var last atomic.Pointer[tls.Certificate]
		last.Store(&pair)
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			// While the two files are being replaced they do not match: keep using the last pair
			// that loaded.
			if next, err := tls.LoadX509KeyPair(cert, key); err == nil {
				last.Store(&next)
			}
			return last.Load(), nil
		}
	}
	return config, nil
}

// ReadSecret returns the content of the file that an option names, with surrounding white space
// removed. Call it each time the secret is needed, so that the file can be rotated without a
// restart.
func ReadSecret(option, file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", option, err)
	}
	return strings.TrimSpace(string(text)), nil
}
