package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/postrider/postrider"
)

type sentKey struct{}

// WithSent returns a context whose requests, by a [tracing] client, record that they have left this
// process. If none was recorded, nothing was sent, whatever the error: no connection, no
// credentials.
func WithSent(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return context.WithValue(ctx, sentKey{}, sent), sent
}

// tracing is the HTTP client of a service. Requests for credentials use another client.
type tracing struct{ aws.HTTPClient }

// Do sends a copy of the body. The SDK closes its own body when the response begins: if the
// transport has not yet read the body's end, it treats that as an error and closes the connection,
// and the answer is lost.
func (t tracing) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.WithContext(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	if sent, ok := r.Context().Value(sentKey{}).(*atomic.Bool); ok {
		trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace)) //nolint:contextcheck // the request's
	}
	return t.HTTPClient.Do(r)
}

// codeOf returns the code of the service's answer, or "" if there was none. It removes an optional
// service prefix and the suffix "Exception".
func codeOf(err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return ""
	}
	code := strings.Replace(answer.ErrorCode(), "KMS.", "Kms", 1)
	code = code[strings.LastIndexAny(code, ".#")+1:]
	return strings.TrimSuffix(code, "Exception")
}

// IsMissing reports whether an error means that the queue or topic does not exist.
func IsMissing(err error) bool {
	return slices.Contains([]string{"QueueDoesNotExist", "NonExistentQueue", "QueueDeletedRecently", "NotFound", "ResourceNotFound"}, codeOf(err))
}

// Classify classifies the error of a request for a name. Without an answer from the service, the
// outcome is unknown if the request was sent.
func Classify(s Service, name string, err error, sent bool) error {
	if err == nil {
		return nil
	}
	code := codeOf(err)
	// A request that was not written completely cannot be stored. Without an operation, TLS found
	// the connection closed.
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "write" || op == nil && errors.Is(err, net.ErrClosed) {
		sent = false
	}
	var response *smithyhttp.ResponseError
	var answer smithy.APIError
	failing := errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError ||
		errors.As(err, &answer) && answer.ErrorFault() == smithy.FaultServer
	switch {
	case IsMissing(err):
		return postrider.NameUnavailable(fmt.Errorf("there is no %s; create it: %s: %w", name, s.Missing(name), err))
	case code == "" && !sent, failing:
		err = postrider.Unavailable(err)
	case code == "": // the answer was lost
	case strings.HasPrefix(code, "InvalidParameter") && strings.Contains(err.Error(), "TopicArn"), slices.Contains([]string{
		"AccessDenied", "AuthorizationError", "UnsupportedOperation", "InvalidSecurity", "OverLimit", "InvalidAddress",
	}, code), strings.HasPrefix(strings.ToLower(code), "kms"):
		err = postrider.NameUnavailable(err)
	case slices.Contains([]string{
		"InvalidMessageContents", "InvalidParameterValue", "InvalidParameter", "ParameterValueInvalid", "InvalidAttributeValue",
		"BatchRequestTooLong", "Validation",
	}, code):
		err = postrider.Permanent(err)
	case strings.Contains(code, "Thrott"), slices.Contains([]string{
		"UnrecognizedClient", "InvalidClientTokenId", "InvalidAccessKeyId", "ExpiredToken", "RequestExpired", "InvalidSignature",
		"SignatureDoesNotMatch", "IncompleteSignature", "MissingAuthenticationToken", "OptInRequired", "NotAuthorized",
	}, code):
		err = postrider.Unavailable(err)
	}
	return err
}
