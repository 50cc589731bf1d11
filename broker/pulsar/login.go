package pulsar

import (
	"errors"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/token"
)

// tokenSource returns the source of tokens, or nil if neither a file nor a provider is set.
func (c *Config) tokenSource() (*token.Source, error) {
	cfg := token.Config{File: c.TokenFile, URL: c.TokenURL, ClientID: c.ClientID, SecretFile: c.SecretFile, Scope: c.Scope}
	if !cfg.IsSet() {
		return nil, nil
	}
	return token.NewSource(cfg)
}

// refused lists client options that other fields set, or that would leave servers unverified.
var refused = map[string]string{
	"URL": "use URL", "TLSConfig": "use TLS", "TLSKeyFilePath": "use TLS", "TLSCertificateFile": "use TLS",
	"TLSTrustCertsFilePath": "use TLS", "TLSCipherSuites": "use TLS", "TLSMinVersion": "use TLS", "TLSMaxVersion": "use TLS",
	"ConnectionTimeout": "use OperationTimeout", "OperationTimeout": "use OperationTimeout",
	"TLSAllowInsecureConnection": "servers are always verified",
	"KeepAliveInterval":          "an outage must be noticed before the relay's lease ends",
	"EnableTransaction":          "a message counts as confirmed when the broker has stored it, not when a transaction ends",
}

// checkClient reports client options that may not be set.
func (c *Config) checkClient() error {
	err := broker.Refuse(c.Client, refused)
	if c.Client.Authentication != nil && (c.Token != "" || c.tokens != nil) {
		err = errors.Join(err, errors.New("the client has Authentication, and a token is set: want one of them"))
	}
	return err
}
