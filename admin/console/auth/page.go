package auth

import (
	"fmt"
	"html"
	"net/http"
)

// page responds to a failed sign-in with a page of its own. It does not use the console's pages,
// which may not load in the response to a request from another site.
func (a *Auth) page(w http.ResponseWriter, status int, title, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%[1]s</title>
<h1>%[1]s</h1>
<p>%[2]s</p>
<p><a href="%[3]s">Back to the console</a></p>
</html>
`, html.EscapeString(title), html.EscapeString(text), html.EscapeString(a.prefix+"/"))
}
