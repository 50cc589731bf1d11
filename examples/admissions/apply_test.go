package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestApply covers what the service does before it answers.
func TestApply(t *testing.T) {
	o := openOffice(t)
	for name, test := range map[string]func(*office){
		"one transaction": oneTransaction, "twice": twice, "mistakes": mistakes, "addresses": addresses, "messages": messages,
	} {
		t.Run(name, func(t *testing.T) { test(o.in(t)) })
	}
}

// oneTransaction checks that a failed commit leaves no application, no document, no message and no
// used key.
func oneTransaction(o *office) {
	ctx, key, before := o.t.Context(), rand.Text(), o.rows()
	_, err := o.pool.Exec(ctx, `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''not now''; END';
		CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON admissions.applications DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION refuse()`)
	must(o.t, err)
	if answer, body := o.apply(key, "law"); answer.StatusCode != http.StatusInternalServerError {
		o.t.Fatalf("%s: %s", answer.Status, body)
	}
	o.wantMore(before, 0)

	_, err = o.pool.Exec(ctx, "DROP TRIGGER refuse ON admissions.applications")
	must(o.t, err)
	if answer, body := o.apply(key, "law"); answer.StatusCode != http.StatusAccepted {
		o.t.Fatalf("%s: %s", answer.Status, body)
	}
	o.wantMore(before, 1)
}

// twice checks that repeated and concurrent copies of a request create one application and get one
// answer.
func twice(o *office) {
	key, before := rand.Text(), o.rows()
	answers := make([]string, 8)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			answer, body := o.apply(key, "law")
			for answer.StatusCode == http.StatusConflict { // the first is being served
				answer, body = o.apply(key, "law")
			}
			answers[i] = answer.Status + answer.Header.Get("Location") + body
		})
	}
	wg.Wait()
	for _, a := range answers {
		if a != answers[0] || !strings.HasPrefix(a, "202") {
			o.t.Errorf("answers differ, or were not taken:\n%s\n%s", answers[0], a)
		}
	}
	o.wantMore(before, 1)

	if answer, body := o.apply(key, "computing"); answer.StatusCode != http.StatusUnprocessableEntity {
		o.t.Errorf("the key with another form: %s: %s", answer.Status, body)
	}
	if answer, body := o.send("/applications", nil); answer.StatusCode != http.StatusBadRequest {
		o.t.Errorf("without a key: %s: %s", answer.Status, body)
	}
}

// mistakes checks that all errors of a form are reported at once, and that the corrected form may
// use the same key.
func mistakes(o *office) {
	key, before := rand.Text(), o.rows()
	form := "--b\r\nContent-Disposition: form-data; name=email\r\n\r\nann\r\n" +
		"--b\r\nContent-Disposition: form-data; name=document; filename=a.exe\r\n\r\n\x7fELF\x00\r\n--b--\r\n"
	answer, body := o.send("/applications", strings.NewReader(form),
		"Content-Type", "multipart/form-data; boundary=b", "Idempotency-Key", key)
	if answer.StatusCode != http.StatusBadRequest || answer.Header.Get("Content-Type") != "application/problem+json" {
		o.t.Errorf("%s, %s", answer.Status, answer.Header.Get("Content-Type"))
	}
	for _, field := range []string{"name", "email", "programme", "document"} {
		if !strings.Contains(body, `"field":"`+field+`"`) {
			o.t.Errorf("nothing about %s in %s", field, body)
		}
	}
	o.wantMore(before, 0)
	if answer, body := o.apply(key, "law"); answer.StatusCode != http.StatusAccepted {
		o.t.Errorf("%s: %s", answer.Status, body)
	}
}

// addresses checks that the answer links to the status, as JSON for programs and as a page for
// browsers, and to the pay desk.
func addresses(o *office) {
	answer, body := o.apply(rand.Text(), "law")
	var a struct{ ApplicationID string }
	must(o.t, json.Unmarshal([]byte(body), &a))
	status, pay := "/applications/"+a.ApplicationID+"/status", "/payments/checkout/"+a.ApplicationID
	want := fmt.Sprintf(`{"applicationId":%q,"statusUrl":%q,"payUrl":%q}`, a.ApplicationID, status, pay)
	if strings.TrimSpace(body) != want || answer.Header.Get("Location") != status {
		o.t.Errorf("the answer is %s at %s, want %s", body, answer.Header.Get("Location"), want)
	}
	for accept, kind := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/json, text/plain, */*": "application/json",
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html; charset=utf-8",
	} {
		answer, body := o.get(status, accept)
		if got := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || got != kind || answer.Header.Get("Vary") != "Accept" {
			o.t.Errorf("who accepts %q gets %s, %s, %v: %s", accept, answer.Status, got, answer.Header["Vary"], body)
		}
	}
	o.await(a.ApplicationID, "submitted", 25)
	answer, _ = o.get(pay, "text/html")
	if got := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || got != o.set.paydeskURL+"/pay/"+a.ApplicationID {
		o.t.Errorf("who wants to pay gets %s to %q", answer.Status, got)
	}
	for _, path := range []string{"/applications/x/status", "/payments/checkout/00000000-0000-4000-8000-000000000000"} {
		if answer, _ := o.get(path, ""); answer.StatusCode != http.StatusNotFound {
			o.t.Errorf("%s: %s", path, answer.Status)
		}
	}
}

// messages checks that one message names all documents, and the other only the application.
func messages(o *office) {
	id := o.admit("law")
	const payload = "SELECT convert_from(payload, 'UTF8') FROM postrider.messages WHERE aggregate_id = $1 AND type = $2"
	var uploaded, submitted, files string
	must(o.t, o.pool.QueryRow(o.t.Context(), payload, id, "document_uploaded").Scan(&uploaded))
	must(o.t, o.pool.QueryRow(o.t.Context(), payload, id, "application_submitted").Scan(&submitted))
	must(o.t, o.pool.QueryRow(o.t.Context(), `
		SELECT string_agg('"' || id || '"', ',' ORDER BY name) FROM admissions.documents WHERE application = $1`, id).Scan(&files))
	if want := `{"applicationId":"` + id + `","applicationFileIds":[` + files + `]}`; uploaded != want {
		o.t.Errorf("document_uploaded is %s, want %s", uploaded, want)
	}
	if want := `{"applicationId":"` + id + `"}`; submitted != want {
		o.t.Errorf("application_submitted is %s, want %s", submitted, want)
	}
}

// leaves are the rows that one application leaves in the database.
var leaves = map[string]int{
	"admissions.applications": 1, "admissions.documents": 2, "postrider.messages": 2, "postrider.idempotency_kept": 1,
}

// rows counts the rows in the database.
func (o *office) rows() map[string]int {
	o.t.Helper()
	rows := make(map[string]int)
	for table := range leaves {
		rows[table] = o.count("SELECT count(*) FROM " + table)
	}
	return rows
}

// wantMore expects the rows of the given number of additional applications.
func (o *office) wantMore(before map[string]int, applications int) {
	o.t.Helper()
	for table, n := range o.rows() {
		if more := n - before[table]; more != applications*leaves[table] {
			o.t.Errorf("%s has %d more rows, want %d", table, more, applications*leaves[table])
		}
	}
}
