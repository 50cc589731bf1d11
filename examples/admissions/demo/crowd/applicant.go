package crowd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/patience"
	"github.com/postrider/postrider/examples/admissions/demo/verdict"
)

// pause is the interval between retries of an applicant.
const pause = 500 * time.Millisecond

// errFinal is an answer that a retry does not change.
var errFinal = errors.New("refused")

type applicant struct {
	crowd                  *Crowd
	programme, name, email string

	status status
}

// status is the service's description of an application.
type status struct {
	ApplicationID string
	Status        string
	Progress      int
	StatusURL     string
	PayURL        string
}

// apply goes through all steps, from the form to the payment.
func (a *applicant) apply(ctx context.Context) error {
	form, header, err := a.form()
	if err != nil {
		return err
	}
	// All attempts send the same bytes with the same key, so that the service recognizes them as
	// one application.
	header.Set("Idempotency-Key", rand.Text())
	err = a.patiently(ctx, func() error {
		_, err := a.ask(ctx, http.MethodPost, a.crowd.pages+"/applications", http.StatusAccepted, form, header)
		return err
	})
	if err != nil {
		return fmt.Errorf("sending the form: %w", err)
	}
	a.crowd.mu.Lock()
	a.crowd.promises = append(a.crowd.promises, verdict.Promise{Email: a.email, Application: a.status.ApplicationID})
	a.crowd.mu.Unlock()
	a.crowd.accepted.Add(1)
	if err := a.patiently(ctx, func() error { return a.look(ctx) }); err != nil {
		return fmt.Errorf("waiting for the payment: %w", err)
	}
	if err := a.patiently(ctx, func() error { return a.pay(ctx) }); err != nil {
		return fmt.Errorf("paying: %w", err)
	}
	a.crowd.paid.Add(1)
	return nil
}

// patiently retries until try succeeds or fails with errFinal.
func (a *applicant) patiently(ctx context.Context, try func() error) error {
	return patience.Until(ctx, pause, errFinal, try)
}

// form returns what a browser would send: the fields, and one document.
func (a *applicant) form() ([]byte, http.Header, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range map[string]string{"name": a.name, "email": a.email, "programme": a.programme} {
		if err := form.WriteField(name, value); err != nil {
			return nil, nil, err
		}
	}
	file, err := form.CreateFormFile("document", "certificate.txt")
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(file, "Certificate of %s\nfor the programme %s\n", a.name, a.programme)
	err = form.Close()
	return body.Bytes(), http.Header{"Content-Type": {form.FormDataContentType()}}, err
}

// look requests the status of the application. It returns an error while there is nothing to pay
// yet.
func (a *applicant) look(ctx context.Context) error {
	if _, err := a.ask(ctx, http.MethodGet, a.crowd.pages+a.status.StatusURL, http.StatusOK, nil, nil); err != nil {
		return err
	}
	if a.status.Progress < 75 {
		return fmt.Errorf("application %s is %s, %d %%", a.status.ApplicationID, a.status.Status, a.status.Progress)
	}
	return nil
}

// pay follows the redirect to the payment provider and submits the payment.
func (a *applicant) pay(ctx context.Context) error {
	desk, err := a.ask(ctx, http.MethodGet, a.crowd.pages+a.status.PayURL, http.StatusSeeOther, nil, nil)
	if err != nil {
		return err
	}
	_, err = a.ask(ctx, http.MethodPost, desk, http.StatusSeeOther, nil, nil)
	return err
}

// ask sends a request and decodes the new status if the response contains one. It returns the
// Location of the response.
func (a *applicant) ask(ctx context.Context, method, address string, want int, body []byte, header http.Header) (location string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	maps.Copy(req.Header, header)
	resp, err := a.crowd.client.Do(req)
	if err != nil {
		a.crowd.retries.Add(1)
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.crowd.retries.Add(1)
		return "", err
	}
	switch {
	case resp.StatusCode != want && resp.StatusCode < 500 && resp.StatusCode != http.StatusConflict && resp.StatusCode != http.StatusTooManyRequests:
		return "", fmt.Errorf("%w: %s %s: %s: %s", errFinal, method, address, resp.Status, text)
	case resp.StatusCode != want:
		a.crowd.retries.Add(1)
		return "", fmt.Errorf("%s %s: %s", method, address, resp.Status)
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json"):
		err = json.Unmarshal(text, &a.status)
	}
	return resp.Header.Get("Location"), err
}
