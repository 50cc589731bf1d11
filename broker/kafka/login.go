package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/token"
)

// SASL mechanisms.
const (
	loginPlain     = "plain"
	loginScram256  = "scram-sha-256"
	loginScram512  = "scram-sha-512"
	loginOAuth     = "oauthbearer"
	loginAmazonIAM = "aws-msk-iam"
)

// logsIn reports whether the configuration asks for a login. Otherwise there is none, or Options
// defines one.
func (c *Config) logsIn() bool {
	return c.user != "" || c.SASL == loginOAuth || c.SASL == loginAmazonIAM
}

// checkLogin reports contradictory settings. Call it after parseURL.
func (c *Config) checkLogin() error {
	var errs []error
	switch c.SASL {
	case loginPlain, loginScram256, loginScram512:
		if c.PasswordFile != "" && c.user == "" {
			errs = append(errs, errors.New("password_file is set, but URL has no user: want kafka://user@host:port"))
		}
		if c.PasswordFile != "" && c.password != "" {
			errs = append(errs, errors.New("password_file is set, and URL has a password: want one of them"))
		}
	case loginOAuth:
		if c.TokenFile == "" && c.TokenURL == "" {
			errs = append(errs, errors.New("sasl is oauthbearer, but neither token_file nor token_url is set"))
		}
	case loginAmazonIAM:
	default:
		errs = append(errs, fmt.Errorf("sasl is %q: want plain, scram-sha-256, scram-sha-512, oauthbearer or aws-msk-iam", c.SASL))
	}
	tokens := token.Config{File: c.TokenFile, URL: c.TokenURL, ClientID: c.ClientID, SecretFile: c.SecretFile, Scope: c.Scope}
	if tokens.IsSet() && c.SASL != loginOAuth {
		errs = append(errs, fmt.Errorf("token_file or token_url is set, but sasl is %s: want oauthbearer", c.SASL))
	}
	var err error
	c.tokens, err = token.NewSource(tokens)
	errs = append(errs, err)
	if c.user != "" && (c.SASL == loginOAuth || c.SASL == loginAmazonIAM) {
		errs = append(errs, fmt.Errorf("URL has a user, but sasl is %s, which has none", c.SASL))
	}
	return errors.Join(errs...)
}

// mechanism returns the SASL mechanism. Secrets are read for each login, so that they can be
// rotated without a restart.
func (c *Config) mechanism() sasl.Mechanism {
	switch c.SASL {
	case loginScram256:
		return scram.Sha256(func(context.Context) (scram.Auth, error) {
			password, err := c.readPassword()
			return scram.Auth{User: c.user, Pass: password}, err
		})
	case loginScram512:
		return scram.Sha512(func(context.Context) (scram.Auth, error) {
			password, err := c.readPassword()
			return scram.Auth{User: c.user, Pass: password}, err
		})
	case loginOAuth:
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			text, err := c.tokens.Token(ctx)
			return oauth.Auth{Token: text}, err
		})
	case loginAmazonIAM:
		return aws.ManagedStreamingIAM(func(context.Context) (aws.Auth, error) {
			a := aws.Auth{AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN")}
			if a.AccessKey == "" || a.SecretKey == "" {
				return a, errors.New("kafka: sasl is aws-msk-iam, but AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set")
			}
			return a, nil
		})
	default:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := c.readPassword()
			return plain.Auth{User: c.user, Pass: password}, err
		})
	}
}

func (c *Config) readPassword() (string, error) {
	if c.PasswordFile == "" {
		return c.password, nil
	}
	return broker.ReadSecret("password_file", c.PasswordFile)
}

// probe logs in once and returns the reason if that is refused. It returns nil if no broker can be
// reached: the line detects that.
func (c *Config) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	client, err := c.client(c.dial, kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	err = client.Ping(ctx)
	var unreachable *net.OpError
	if err == nil || ctx.Err() != nil || errors.As(err, &unreachable) {
		return nil
	}
	return fmt.Errorf("the brokers refused the login (SASL %s): %w", c.SASL, err)
}

// refused lists client options that our guarantees depend on, and why.
var refused = []struct {
	name string
	by   any
	why  string
}{
	{"RequiredAcks", kgo.RequiredAcks, "a message counts as confirmed when all replicas in sync have it"},
	{"DisableIdempotentWrite", kgo.DisableIdempotentWrite, "retries inside the client would repeat messages and change their order"},
	{"TransactionalID", kgo.TransactionalID, "records would wait for a transaction end that is never sent"},
	{"MaxProduceRequestsInflightPerBroker", kgo.MaxProduceRequestsInflightPerBroker, "more than one request at a time changes the order when one fails"},
	{"ConsumerGroup", kgo.ConsumerGroup, "it is the option group"},
	{"ConsumeTopics", kgo.ConsumeTopics, "it is the option name"},
	{"AutoCommitMarks", kgo.AutoCommitMarks, "messages are committed when their effect is, not before"},
	{"Dialer", kgo.Dialer, "use Dial"},
	{"DialTLSConfig", kgo.DialTLSConfig, "use TLS"},
}

// refuse reports, by name, options that would break a guarantee.
func refuse(options []kgo.Opt) error {
	if len(options) == 0 {
		return nil
	}
	usual, err := kgo.NewClient()
	if err != nil {
		return err
	}
	defer usual.Close()
	asked, err := kgo.NewClient(options...)
	if err != nil {
		return fmt.Errorf("options: %w", err)
	}
	defer asked.Close()
	var errs []error
	for _, r := range refused {
		if text(asked.OptValues(r.by)) != text(usual.OptValues(r.by)) {
			errs = append(errs, fmt.Errorf("option %s cannot be set: %s", r.name, r.why))
		}
	}
	return errors.Join(errs...)
}

// text returns option values in comparable form; functions and pointers compare by address.
func text(values []any) string { return fmt.Sprintf("%v", values) }
