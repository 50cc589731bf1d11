package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
)

// verifyDocuments is the job verify_document, for all documents of an application. It verifies the
// documents in one transaction with the record of the job: either all are verified, or none.
func verifyDocuments(ctx context.Context, tx pgx.Tx, m about) error {
	for _, file := range m.FileIDs {
		if err := verifyDocument(ctx, tx, m.ApplicationID, file); err != nil {
			return err
		}
	}
	return nil
}

func verifyDocument(ctx context.Context, tx pgx.Tx, application, file string) error {
	var d document
	var sum []byte
	err := tx.QueryRow(ctx, "SELECT name, content_type, sha256, content FROM admissions.documents WHERE id = $1 AND application = $2",
		file, application).Scan(&d.name, &d.contentType, &sum, &d.content)
	if err != nil {
		return err
	}
	if err := check(d, sum); err != nil {
		return postrider.Permanent(fmt.Errorf("document %s: %w", file, err)) // a retry does not help
	}
	_, err = tx.Exec(ctx, "UPDATE admissions.documents SET verified_at = now() WHERE id = $1", file)
	return err
}

// check stands for the checks of a real university.
func check(d document, sum []byte) error {
	switch {
	case len(d.content) == 0 || len(d.content) > maxDocument:
		return fmt.Errorf("has %d bytes", len(d.content))
	case sha256.Sum256(d.content) != [32]byte(sum):
		return errors.New("is not what was uploaded: its SHA-256 differs")
	case http.DetectContentType(d.content) != d.contentType:
		return fmt.Errorf("is not %s", d.contentType)
	}
	return nil
}
