package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
)

// apply accepts an application. One transaction stores the application, its documents, the messages
// about them, and the answer under the request's idempotency key. A client that gets no answer
// sends the request again and gets the stored answer.
func (s *service) apply(ctx context.Context, tx pgx.Tx, r *http.Request) (idempotency.Answer, error) {
	f, wrong := readForm(r)
	if len(wrong) > 0 {
		return refusal(wrong)
	}
	var id string
	err := tx.QueryRow(ctx, `
		INSERT INTO admissions.applications (name, email, programme)
		SELECT $1, $2, id FROM admissions.programmes WHERE id = $3 RETURNING id::text`,
		f.name, f.email, f.programme).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return refusal([]fieldError{{"programme", "There is no such programme."}})
	}
	if err != nil {
		return idempotency.Answer{}, err
	}

	files := make([]string, len(f.documents))
	for i, d := range f.documents {
		sum := sha256.Sum256(d.content)
		err := tx.QueryRow(ctx, `
			INSERT INTO admissions.documents (application, name, content_type, sha256, content)
			VALUES ($1, $2, $3, $4, $5) RETURNING id::text`,
			id, d.name, d.contentType, sum[:], d.content).Scan(&files[i])
		if err != nil {
			return idempotency.Answer{}, err
		}
	}
	err = s.outbox.Enqueue(ctx, tx,
		postrider.Event(documentUploaded, postrider.Aggregate{Type: "application", ID: id}, about{ApplicationID: id, FileIDs: files}),
		postrider.Event(applicationSubmitted, postrider.Aggregate{Type: "application", ID: id}, about{ApplicationID: id}))
	if err != nil {
		return idempotency.Answer{}, err
	}

	answer, err := idempotency.JSON(http.StatusAccepted, struct {
		ID        string `json:"applicationId"`
		StatusURL string `json:"statusUrl"`
		PayURL    string `json:"payUrl"`
	}{id, statusPath(id), payPath(id)})
	return answer.With("Location", statusPath(id)), err
}

// refusal returns an RFC 9457 problem with all errors of the form. It is not stored under the key,
// so that the corrected form can use the same key.
func refusal(wrong []fieldError) (idempotency.Answer, error) {
	body, err := json.Marshal(struct {
		Type   string       `json:"type"`
		Title  string       `json:"title"`
		Status int          `json:"status"`
		Errors []fieldError `json:"errors"`
	}{"about:blank", "The application has mistakes", http.StatusBadRequest, wrong})
	answer := idempotency.Answer{Status: http.StatusBadRequest, Body: body}
	return answer.With("Content-Type", "application/problem+json"), err
}

// keepAccepted stores answers of accepted applications only.
func keepAccepted(status int) bool { return status == http.StatusAccepted }
