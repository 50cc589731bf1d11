package main

import (
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxDocuments = 5
	maxDocument  = 2 << 20
	maxForm      = maxDocuments*maxDocument + 64<<10
)

// accepted are the accepted content types of documents, as detected from the content. The type that
// a browser sends is ignored.
var accepted = []string{"application/pdf", "image/png", "image/jpeg", "text/plain; charset=utf-8"}

// form is what an applicant submits.
type form struct {
	name, email, programme string
	documents              []document
}

type document struct {
	name, contentType string
	content           []byte
}

// fieldError describes what is wrong with one field.
type fieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// readForm parses a form and returns all errors in it.
func readForm(r *http.Request) (f form, wrong []fieldError) {
	if err := r.ParseMultipartForm(maxForm); err != nil {
		return f, []fieldError{{"", "The request is not multipart/form-data, or is cut off."}}
	}
	add := func(field, message string, args ...any) {
		wrong = append(wrong, fieldError{field, fmt.Sprintf(message, args...)})
	}
	f.name = strings.TrimSpace(r.FormValue("name"))
	if !isLine(f.name, 200) {
		add("name", "Write your name, in one line.")
	}
	f.email = strings.TrimSpace(r.FormValue("email"))
	if a, err := mail.ParseAddress(f.email); err != nil || a.Address != f.email || !isLine(f.email, 254) {
		add("email", "Write an e-mail address, such as ann@example.com.")
	}
	if f.programme = r.FormValue("programme"); f.programme == "" {
		add("programme", "Choose a programme.")
	}
	files := r.MultipartForm.File["document"]
	if len(files) == 0 || len(files) > maxDocuments {
		add("document", "Add between 1 and %d documents.", maxDocuments)
		return f, wrong
	}
	for _, file := range files {
		d, problem := readDocument(file)
		if problem != "" {
			add("document", "%q %s", file.Filename, problem)
		}
		f.documents = append(f.documents, d)
	}
	return f, wrong
}

func readDocument(header *multipart.FileHeader) (d document, problem string) {
	file, err := header.Open()
	if err != nil {
		return d, "cannot be read."
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxDocument+1))
	d = document{name: header.Filename, contentType: http.DetectContentType(content), content: content}
	switch {
	case err != nil:
		return d, "cannot be read."
	case !isLine(d.name, 200):
		return d, "has a name that is too long or not plain text."
	case len(content) == 0:
		return d, "is empty."
	case len(content) > maxDocument:
		return d, "is larger than 2 MB."
	case !slices.Contains(accepted, d.contentType):
		return d, "is not a PDF, PNG, JPEG or plain text file."
	}
	return d, ""
}

// isLine reports whether a text is safe for a database and for the header of a mail.
func isLine(s string, most int) bool {
	return s != "" && len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
